package main

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/palisade/palisade/cmd/palisade/printout"
)

// streams is what a command reads and writes, and the environment it runs in.
type streams struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
	now      func() time.Time
}

func osStreams() streams {
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), now: time.Now}
}

func (s streams) getenv(name string) string {
	for _, entry := range s.environ {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// colour tells whether w may get colours: a terminal, unless NO_COLOR (https://no-color.org) or TERM=dumb forbids it.
func (s streams) colour(w io.Writer) bool {
	return isTerminal(w) && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb"
}

func isTerminal(stream any) bool {
	f, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// printable makes text from a report or a server safe to print: a rule id or path that holds control characters could
// otherwise rewrite the terminal, break a table or hide text by turning its direction.
func printable(text string) string { return printout.Text(text) }
