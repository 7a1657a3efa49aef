// Command apimachinery reads facts off Kubernetes' own Go modules, for maintainers: see README.md.
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func(string) error{"messages": messages, "kinds": kinds, "strategic": strategic, "merges": merges}
	if len(os.Args) != 3 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: apimachinery messages|kinds SRC, apimachinery strategic|merges MODULE")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
