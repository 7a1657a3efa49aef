//! Tests of the packages below the registry, with the kinds that the registry brings.

mod attributes;
mod metadata;
mod quota;
mod tables;
