//! The values of an annotation column.

use super::AnnotationKind;

/// The values of one annotation column for one batch; `None` is a null.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// For [`AnnotationKind::F64`].
    F64(Vec<Option<f64>>),
    /// For [`AnnotationKind::U64`].
    U64(Vec<Option<u64>>),
    /// For [`AnnotationKind::Bool`].
    Bool(Vec<Option<bool>>),
    /// For [`AnnotationKind::Utf8`].
    Utf8(Vec<Option<String>>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::F64(v) => v.len(),
            Values::U64(v) => v.len(),
            Values::Bool(v) => v.len(),
            Values::Utf8(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their type.
    pub fn kind(&self) -> AnnotationKind {
        match self {
            Values::F64(_) => AnnotationKind::F64,
            Values::U64(_) => AnnotationKind::U64,
            Values::Bool(_) => AnnotationKind::Bool,
            Values::Utf8(_) => AnnotationKind::Utf8,
        }
    }
}
