// Package other is imported.
package b

type Names []string
type Labels map[string]string
type Word string
type Num int
type S struct {
	A string `json:"a,omitempty"`
}
