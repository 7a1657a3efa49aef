//! Go's kinds of values, and its sizes of unsigned integers.

/// Width of an unsigned number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UintKind {
    /// `uint8`, an element of a string or byte slice
    U8,
    /// `uint64`
    U64,
}

/// Go's reflect.Kind, as far as templates meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nil
    Invalid,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint8`
    Uint8,
    /// `uint64`
    Uint64,
    /// `float64`
    Float64,
    /// `string`
    String,
    /// slices
    Slice,
    /// maps
    Map,
    /// structs
    Struct,
    /// pointers
    Ptr,
}

impl Kind {
    /// The name `kindOf` prints.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Invalid => "invalid",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Int64 => "int64",
            Kind::Uint8 => "uint8",
            Kind::Uint64 => "uint64",
            Kind::Float64 => "float64",
            Kind::String => "string",
            Kind::Slice => "slice",
            Kind::Map => "map",
            Kind::Struct => "struct",
            Kind::Ptr => "ptr",
        }
    }
}
