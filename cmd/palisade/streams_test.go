package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestPrintableHasNothingToHide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got := printable(text)
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q became %q", text, got)
		}
		if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) && got != text {
			t.Fatalf("%q was changed to %q", text, got)
		}
	})
}

func TestPrintableKeepsLetters(t *testing.T) {
	const text = "src/größe/日本語 'x' \"y\".go"
	if got := printable(text); got != text {
		t.Errorf("got %q", got)
	}
}

func TestNoColourAwayFromATerminal(t *testing.T) {
	if (streams{}).colour(&bytes.Buffer{}) {
		t.Error("a buffer is no terminal")
	}
}
