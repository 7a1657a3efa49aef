//! Beside kubectl, and inputs that mean harm.

mod hostile;
mod oracle;
