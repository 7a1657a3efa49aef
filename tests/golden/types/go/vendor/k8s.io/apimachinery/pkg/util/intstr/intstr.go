package intstr

// IntOrString is one of both.
type IntOrString struct{ StrVal string }
