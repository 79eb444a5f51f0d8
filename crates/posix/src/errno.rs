//! Error numbers as values, with their names.

use std::fmt;

/// A POSIX error number, as `errno(3)` numbers it on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(pub u16);

macro_rules! errnos {
    ($($name:ident = $value:literal),* $(,)?) => {
        impl Errno {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub const $name: Errno = Errno($value);
            )*

            /// The symbolic name (`"ENOENT"`), if this is a number Linux gives a name.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $( $value => Some(stringify!($name)), )* _ => None }
            }

            /// The number behind a symbolic name, as printed by strace.
            pub fn from_name(name: &[u8]) -> Option<Errno> {
                $( if name == stringify!($name).as_bytes() { return Some(Errno($value)); } )*
                None
            }
        }
    };
}

// <asm-generic/errno-base.h> and <asm-generic/errno.h>; the common ones first, as `from_name` scans.
errnos! {
    ENOENT = 2, EAGAIN = 11, EEXIST = 17, ENOTDIR = 20, EINVAL = 22, EACCES = 13, ENOTTY = 25, ENXIO = 6,
    EBADF = 9, EPERM = 1, ESRCH = 3, EINTR = 4, EIO = 5, E2BIG = 7, ENOEXEC = 8, ECHILD = 10, ENOMEM = 12,
    EFAULT = 14, ENOTBLK = 15, EBUSY = 16, EXDEV = 18, ENODEV = 19, EISDIR = 21, ENFILE = 23, EMFILE = 24,
    ETXTBSY = 26, EFBIG = 27, ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33, ERANGE = 34,
    EDEADLK = 35, ENAMETOOLONG = 36, ENOLCK = 37, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, ENOMSG = 42, ENODATA = 61,
    ETIME = 62, ENOLINK = 67, EPROTO = 71, EBADMSG = 74, EOVERFLOW = 75, EILSEQ = 84, EUSERS = 87, ENOTSOCK = 88,
    EOPNOTSUPP = 95, EAFNOSUPPORT = 97, ENETUNREACH = 101, ECONNRESET = 104, EADDRINUSE = 98, ENOTCONN = 107,
    ETIMEDOUT = 110,
    ECONNREFUSED = 111, EALREADY = 114, EINPROGRESS = 115, ESTALE = 116, EUCLEAN = 117, EDQUOT = 122, ECANCELED = 125,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl std::error::Error for Errno {}

impl From<rustix::io::Errno> for Errno {
    fn from(e: rustix::io::Errno) -> Self {
        Errno(u16::try_from(e.raw_os_error()).unwrap_or(Errno::EIO.0))
    }
}

impl From<Errno> for std::io::Error {
    fn from(e: Errno) -> Self {
        std::io::Error::from_raw_os_error(i32::from(e.0))
    }
}
