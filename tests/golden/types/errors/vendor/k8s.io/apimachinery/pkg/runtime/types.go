package runtime

// RawExtension is any object.
type RawExtension struct{ Raw []byte }
