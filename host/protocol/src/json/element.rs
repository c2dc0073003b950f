//! From one JSON scalar to one tensor element.

/// An element type. Each constructor returns `None` if the type cannot hold the JSON scalar.
pub(super) trait Element: Sized {
    /// Noun with its article, for errors.
    const NAME: &'static str;
    fn from_bool(_value: bool) -> Option<Self> {
        None
    }
    fn from_u64(_value: u64) -> Option<Self> {
        None
    }
    fn from_i64(_value: i64) -> Option<Self> {
        None
    }
    fn from_f64(_value: f64) -> Option<Self> {
        None
    }
    fn from_str(_value: &str) -> Option<Self> {
        None
    }
}

macro_rules! integer_elements {
    ($($integer:ty: $name:literal),* $(,)?) => {$(
        impl Element for $integer {
            const NAME: &'static str = $name;
            fn from_u64(value: u64) -> Option<Self> {
                Self::try_from(value).ok()
            }
            fn from_i64(value: i64) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}

integer_elements! {
    u8: "a UINT8 number", u16: "a UINT16 number",
    u32: "a UINT32 number", u64: "a UINT64 number",
    i8: "an INT8 number", i16: "an INT16 number",
    i32: "an INT32 number", i64: "an INT64 number",
}

impl Element for f32 {
    const NAME: &'static str = "an FP32 number";
    fn from_u64(value: u64) -> Option<Self> {
        Some(value as Self)
    }
    fn from_i64(value: i64) -> Option<Self> {
        Some(value as Self)
    }
    fn from_f64(value: f64) -> Option<Self> {
        Some(value as Self).filter(|narrowed| narrowed.is_finite())
    }
}

impl Element for bool {
    const NAME: &'static str = "true or false";
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl Element for Vec<u8> {
    const NAME: &'static str = "a string";
    fn from_str(value: &str) -> Option<Self> {
        Some(value.as_bytes().to_vec())
    }
}
