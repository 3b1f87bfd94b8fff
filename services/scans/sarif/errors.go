package sarif

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

// FormatError says that a file is not a SARIF 2.1.0 report.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "not a SARIF 2.1.0 report: " + e.Reason }

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

// locate converts a decoder's error to a typed error. It looks up the line in src.
func locate(err error, src io.ReadSeeker, base, consumed int64, limits Limits) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntactic):
		msg := strings.TrimPrefix(syntactic.Err.Error(), "jsontext: ")
		if errors.Is(syntactic.Err, io.ErrUnexpectedEOF) {
			msg = "the file ends in the middle of a value"
		}
		return syntaxError(src, base+syntactic.ByteOffset, string(syntactic.JSONPointer), msg)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return syntaxError(src, base+consumed, "", "the file ends in the middle of a value")
	case errors.Is(err, errOverBudget):
		return &LimitError{What: fmt.Sprintf("a single text near byte %d has too many bytes", base+consumed), Max: limits.MaxTokenBytes}
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
	return &SyntaxError{Offset: offset, Line: line, Column: column, Within: cut(clean(within), 200), Msg: msg}
}

// errTrailing is the syntax error of a file that holds more than one document.
var errTrailing = errors.New("more text after the end of the report")
