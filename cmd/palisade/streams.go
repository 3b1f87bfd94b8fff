package main

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/palisade/palisade/services/findings/printout"
)

// streams has the input, output and environment of a command.
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

// colour reports whether w supports colours: a terminal, unless NO_COLOR (https://no-color.org) or TERM=dumb is set.
func (s streams) colour(w io.Writer) bool {
	return isTerminal(w) && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb"
}

func isTerminal(stream any) bool {
	f, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// printable escapes text from a report or a server for printing. Control characters in a rule id or path could rewrite
// the terminal, break a table, or hide text with bidirectional controls.
func printable(text string) string { return printout.Text(text) }
