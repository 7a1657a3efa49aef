/*
A header that is not documentation.
+groupName=wrong.example.com
*/

// +groupName=comments.example.com

// Package v1 is about comments.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1" // +kubebuilder:skip is no marker here, since it is not at its start
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list

// A constant with a marker in its documentation, which nobody reads.
// +kubebuilder:rbac:groups=lost,resources=lost,verbs=get
const answer = 42

type (
	// Grouped is declared in a group.
	// +kubebuilder:validation:MaxLength=3
	Grouped string

	// +kubebuilder:validation:MaxLength=4

	// Second stands below a marker.
	Second string // +kubebuilder:validation:MinLength=9

	Third string
)

// +kubebuilder:validation:MaxLength=5

// Above has its marker above its documentation.
type Above string

// +kubebuilder:validation:MinLength=6

// A comment between.

// Between has its marker two groups above, which is too far.
type Between string

/* Starred is documented with stars,
   on two lines.
   +kubebuilder:validation:MaxLength=7
*/
type Starred string

//NoSpace has none after its slashes.
type NoSpace string

// Directive is followed by one.
//nolint:all
//go:something
//
//
//   Indented   
//	tab
//
// TODO: not this line.
// TODOs neither.
// ---
// Nothing of this.
type Directive string

// Fenced has code:
// ```
// TODO: stays
// ---
// ```
// after.
// TODO gone
type Fenced string

// CommentSpec has comments.
type CommentSpec struct { // +kubebuilder:validation:MaxLength=1
	First string `json:"first"` // trailing, not documentation
	// Second is documented. +kubebuilder:validation:MaxLength=2
	//  +kubebuilder:validation:MaxLength=3
	//+kubebuilder:validation:MinLength=1
	Second string `json:"second"` // +kubebuilder:validation:Pattern=x

	// Not documentation: a blank line follows.

	Third string `json:"third"`

	// +kubebuilder:validation:MaxLength=4

	// Fourth has a marker above.
	Fourth string `json:"fourth"`
	// +kubebuilder:validation:MinLength=2
	// A comment of several
	// lines.
	//
	//
	// And a paragraph.
	Fifth string /* inside */ `json:"fifth"`
	/* Sixth is starred. */
	Sixth string `json:"sixth"`
	/*
	 * Seventh has a star
	 * on each line.
	 */
	Seventh string `json:"seventh"`
	// Eighth “quotes” and ünïcödé.
	Eighth string `json:"eighth"`

	Grouped   Grouped   `json:"grouped"`
	Two       Second    `json:"two"`
	Three     Third     `json:"three"`
	Above     Above     `json:"above"`
	Between   Between   `json:"between"`
	Starred   Starred   `json:"starred"`
	NoSpace   NoSpace   `json:"noSpace"`
	Directive Directive `json:"directive"`
	Fenced    Fenced    `json:"fenced"`
	// +kubebuilder:storageversion
}

// +kubebuilder:resource:shortName=co

// Comment is the kind.
//
// +kubebuilder:subresource:status
type Comment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CommentSpec `json:"spec"`
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get

// Do is a function; the marker above is the package's.
// +kubebuilder:rbac:groups=lost,resources=too,verbs=get
func Do() {
	// +kubebuilder:rbac:groups=lost,resources=inside,verbs=get
}

// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=*
