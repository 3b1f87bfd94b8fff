package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func startBare(t *testing.T, page string) (*child, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.json")
	if page != "" {
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return start(t.Context(), roleBare, childSettings{Page: file}, t.Output())
}

func TestChild(t *testing.T) {
	c, err := startBare(t, "hello")
	if err != nil {
		t.Fatal(err)
	}
	asker := newClient(c.ready.HTTP, "", 1)
	if err := asker.get("/", "", 5)(t.Context()); err != nil {
		t.Error(err)
	}
	if err := asker.get("/", "", 6)(t.Context()); err == nil || !strings.Contains(err.Error(), "got 5 bytes, want 6") {
		t.Errorf("an answer of another size: got %v", err)
	}
	before, err := c.cpu()
	if err != nil || before <= 0 {
		t.Errorf("cpu: got %v %v, want more than nothing", before, err)
	}
	if _, err := c.ask("dance"); err == nil || !strings.Contains(err.Error(), `unknown request "dance"`) {
		t.Errorf("an unknown request: got %v", err)
	}
	if err := c.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestChildThatCannotServe(t *testing.T) {
	if _, err := startBare(t, ""); err == nil || !strings.Contains(err.Error(), "page.json") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestChildThatDies(t *testing.T) {
	c, err := startBare(t, "hello")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.cpu(); err == nil || !strings.Contains(err.Error(), roleBare) {
		t.Errorf("got %v, want an error that names the role", err)
	}
	if err := c.stop(); err == nil {
		t.Error("stop: got no error of a child that was killed")
	}
}
