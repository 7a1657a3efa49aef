module example.com/golden

go 1.24.0

require (
	k8s.io/apiextensions-apiserver v0.36.0
	k8s.io/apimachinery v0.36.0
)
