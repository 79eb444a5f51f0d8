//! What one entry of the vector contributes to a prediction.

use serde::Serialize;

/// What one entry of the vector contributes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EntryShare {
    /// The entry's name.
    pub entry: String,
    /// How often it was charged; fractions come from interpolation.
    pub weight: f64,
    /// What it costs, nanoseconds.
    pub mean_ns: f64,
    /// Their product.
    pub ns: f64,
    /// Means of the measurement's rounds, for the uncertainty.
    #[serde(skip)]
    pub rounds_ns: Vec<f64>,
    /// The entry's own 95 % interval, for entries without rounds.
    #[serde(skip)]
    pub interval_ns: (f64, f64),
}
