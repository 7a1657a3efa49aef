// Package batch reads cases as JSON lines and answers each with a JSON line, so that one error does not end a run.
package batch

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Case is one question: templates with values, or a YAML text.
type Case struct {
	// Files are the templates of a chart named probe, by path below the chart.
	Files map[string]string `json:"files,omitempty"`
	// Values is the text of the chart's values.yaml.
	Values string `json:"values,omitempty"`
	// Yaml is a text to read and write again.
	Yaml *string `json:"yaml,omitempty"`
	// Manifest is a rendered file to split, read and sort.
	Manifest *string `json:"manifest,omitempty"`
}

// Helm is one version of Helm.
type Helm struct {
	// Render executes all templates of a case.
	Render func(Case) (map[string]string, error)
	// Yaml answers what the text is, by question.
	Yaml func(string) map[string]string
	// Sort answers with the documents of a rendered file in install order.
	Sort func(string) (string, error)
}

// Answer is a case's result.
type Answer struct {
	// Out is the output of each template, in hex because it may be no UTF-8.
	Out map[string]string `json:"out,omitempty"`
	// Error is Helm's text.
	Error string `json:"error,omitempty"`
	// Yaml holds the answers about a YAML text.
	Yaml map[string]string `json:"yaml,omitempty"`
	// Unstable says that Helm itself answers differently from run to run.
	Unstable bool `json:"unstable,omitempty"`
}

// Runs is how often a case with templates is asked, to find out whether Helm is sure.
const runs = 3

// Main answers standard input on standard output. Each answer comes from a child, because some cases end Helm or never
// end in it: a map that holds itself.
func Main(helm Helm) {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer output.Flush()
	if len(os.Args) > 1 && os.Args[1] == "child" {
		debug.SetMaxStack(256 << 20)
		for {
			line, err := input.ReadBytes('\n')
			if err != nil {
				return
			}
			output.Write(answer(helm, line))
			output.WriteByte('\n')
			output.Flush()
		}
	}
	children := make([]*child, runtime.NumCPU())
	for i := range children {
		children[i] = &child{}
	}
	for {
		lines := read(input, 2000)
		if len(lines) == 0 {
			return
		}
		answers := make([][]byte, len(lines))
		var wait sync.WaitGroup
		next := make(chan int)
		for _, worker := range children {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for i := range next {
					answers[i] = worker.ask(lines[i])
				}
			}()
		}
		for i := range lines {
			next <- i
		}
		close(next)
		wait.Wait()
		for _, line := range answers {
			output.Write(line)
		}
	}
}

type child struct {
	input  io.WriteCloser
	output *bufio.Reader
	wait   func() error
	kill   func() error
}

func (c *child) ask(line []byte) []byte {
	if c.wait == nil {
		command := exec.Command(os.Args[0], "child")
		input, _ := command.StdinPipe()
		output, _ := command.StdoutPipe()
		if err := command.Start(); err != nil {
			panic(err)
		}
		c.input, c.output, c.wait = input, bufio.NewReaderSize(output, 1<<20), command.Wait
		c.kill = command.Process.Kill
	}
	if line[len(line)-1] != '\n' {
		line = append(line, '\n')
	}
	c.input.Write(line)
	late := time.AfterFunc(5*time.Second, func() { c.kill() })
	reply, err := c.output.ReadBytes('\n')
	late.Stop()
	if err == nil {
		return reply
	}
	c.input.Close()
	c.wait()
	c.wait = nil
	return []byte("{\"crash\":true}\n")
}

func read(input *bufio.Reader, most int) [][]byte {
	var lines [][]byte
	for len(lines) < most {
		line, err := input.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, line)
		}
		if err != nil {
			break
		}
	}
	return lines
}

func answer(helm Helm, line []byte) []byte {
	var question Case
	if err := json.Unmarshal(line, &question); err != nil {
		return write(Answer{Error: "case: " + err.Error()})
	}
	switch {
	case question.Yaml != nil:
		return write(Answer{Yaml: helm.Yaml(*question.Yaml)})
	case question.Manifest != nil:
		text, err := helm.Sort(*question.Manifest)
		if err != nil {
			return write(Answer{Error: err.Error()})
		}
		return write(Answer{Out: map[string]string{"": hex.EncodeToString([]byte(text))}})
	}
	first := write(once(helm, question))
	for range runs - 1 {
		if !bytes.Equal(first, write(once(helm, question))) {
			return write(Answer{Unstable: true})
		}
	}
	return first
}

func once(helm Helm, question Case) (result Answer) {
	defer func() {
		if r := recover(); r != nil {
			result = Answer{Error: fmt.Sprintf("panic: %v", r)}
		}
	}()
	files, err := helm.Render(question)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	result.Out = map[string]string{}
	for name, text := range files {
		result.Out[name] = hex.EncodeToString([]byte(text))
	}
	return result
}

func write(value Answer) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte(`{"error":"answer cannot be written"}`)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
