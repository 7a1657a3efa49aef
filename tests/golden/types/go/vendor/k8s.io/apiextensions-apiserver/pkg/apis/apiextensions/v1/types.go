package v1

// JSON is any value.
type JSON struct{ Raw []byte }
