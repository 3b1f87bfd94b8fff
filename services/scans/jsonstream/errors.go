package jsonstream

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// SyntaxError says where a report stops being JSON. Offset is in bytes from the start of the file. Line and Column are
// 1-based, and Column counts bytes.
type SyntaxError struct {
	Offset, Line, Column int64
	// Within is the JSON pointer of the value that was being read, or empty at the top.
	Within string
	Msg    string
}

func (e *SyntaxError) Error() string {
	where := ""
	if e.Within != "" {
		where = ", within " + e.Within
	}
	return fmt.Sprintf("the report is not valid JSON: %s at line %d, column %d (byte %d%s)", e.Msg, e.Line, e.Column, e.Offset, where)
}

// FormatError says why a file is not text in JSON.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "not JSON: " + e.Reason }

// LimitError says that a report exceeds one of the [Limits]. What describes the limit with its unit.
type LimitError struct {
	What string
	Max  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the report is too large: %s; at most %d allowed", e.What, e.Max)
}

// errOverBudget is returned by the reader below the decoder if a value exceeds its size limit.
var errOverBudget = errors.New("value over its size limit")

// Locate converts an error of the decoder to a typed error, a [*SyntaxError] or a [*LimitError]. It returns other
// errors unchanged.
func (s *Stream) Locate(err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntactic):
		msg := strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
		if errors.Is(syntactic.Err, io.ErrUnexpectedEOF) {
			msg = "the file ends in the middle of a value"
		}
		return syntaxError(s.src, s.base+s.meter.original(syntactic.ByteOffset), string(syntactic.JSONPointer), msg)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return syntaxError(s.src, s.Offset(), "", "the file ends in the middle of a value")
	case errors.Is(err, errOverBudget):
		return &LimitError{What: fmt.Sprintf("a single text near byte %d has too many bytes", s.Offset()), Max: s.limits.MaxTokenBytes}
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit
	}
	return err
}

func syntaxError(src io.ReadSeeker, offset int64, within, msg string) error {
	line, column, err := position(src, offset)
	if err != nil {
		return fmt.Errorf("read the report again to locate a syntax error: %w", err)
	}
	return &SyntaxError{Offset: offset, Line: line, Column: column, Within: Cut(Clean(within), 200), Msg: msg}
}

// errTrailing is the syntax error of a file that holds more than one document.
var errTrailing = errors.New("more text after the end of the report")
