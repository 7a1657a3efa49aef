// Package utils runs programs for the end-to-end tests.
package utils

import (
	"fmt"
	"os/exec"
)

// Run runs a command in the project's folder, and gives all that it printed.
func Run(cmd *exec.Cmd) (string, error) {
	cmd.Dir = "../.."
	output, err := cmd.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%v: %w\n%s", cmd.Args, err, output)
	}
	return string(output), nil
}
