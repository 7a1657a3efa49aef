package unstructured

// Unstructured is any object.
type Unstructured struct {
	Object map[string]interface{}
}
