package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// stopTimeout limits how long a child may take to exit.
const stopTimeout = 30 * time.Second

// child is a server in a separate process. The parent sends one request per line to its stdin, and the child writes one
// response per line. The child exits when its stdin closes, so it never outlives the parent.
type child struct {
	role  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ready readiness
}

// readiness is the first line of a child.
type readiness struct {
	HTTP  string `json:"http"`
	GRPC  string `json:"grpc,omitempty"`
	Token string `json:"token,omitempty"` // of a peer that creates its own token
	Error string `json:"error,omitempty"`
}

// start runs this program again in the given role and waits until it serves. The settings are passed in the
// environment: they contain a token and perhaps a password, and command lines are public.
func start(ctx context.Context, role string, settings childSettings, stderr io.Writer, env ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), self, role)
	command.Env = append(append(os.Environ(), env...), childEnv+"="+string(encoded))
	return startCommand(role, command, stderr)
}

// startCommand runs a program that prints its addresses in its first line, and exits when its stdin closes.
func startCommand(role string, command *exec.Cmd, stderr io.Writer) (_ *child, err error) {
	c := &child{role: role, cmd: command}
	c.cmd.Stderr = stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	if err := c.read(&c.ready); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if c.ready.Error != "" {
		return nil, errors.Join(fmt.Errorf("%s: %s", role, c.ready.Error), c.stop())
	}
	return c, nil
}

func (c *child) read(into any) error {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended early (its output is above): %w", c.role, err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%s: answer %q: %w", c.role, line, err)
	}
	return nil
}

// ask sends one request and reads the response.
func (c *child) ask(request ...string) (usage, error) {
	var u usage
	if _, err := io.WriteString(c.in, strings.Join(request, " ")+"\n"); err != nil {
		return u, fmt.Errorf("%s: %w", c.role, err)
	}
	if err := c.read(&u); err != nil {
		return u, err
	}
	if u.Error != "" {
		return u, fmt.Errorf("%s: %s: %s", c.role, request[0], u.Error)
	}
	return u, nil
}

// cpu returns the CPU time of the child since its start, including garbage collection and kernel time.
func (c *child) cpu() (time.Duration, error) {
	u, err := c.ask(askCPU)
	return u.CPU, err
}

// profiled writes a CPU profile of the child to file while fn runs.
func (c *child) profiled(file string, fn func() error) error {
	if _, err := c.ask(askProfile, file); err != nil {
		return err
	}
	err := fn()
	_, stopped := c.ask(askProfileEnd)
	return errors.Join(err, stopped)
}

// stop stops the child; it kills the child after stopTimeout.
func (c *child) stop() error {
	timer := time.AfterFunc(stopTimeout, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	closed := c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.role, err)
	}
	return closed
}
