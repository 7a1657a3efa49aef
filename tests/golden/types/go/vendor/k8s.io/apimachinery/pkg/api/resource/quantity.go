package resource

// Quantity is an amount.
type Quantity struct{ i int64 }
