package scans

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/palisade/palisade/services/internal/apierr"
)

// Reports are stored as UTF-8. PowerShell's ">" writes UTF-16, and XML may declare any encoding.

// xmlHead matches the declaration of an XML document up to its encoding.
var xmlHead = regexp.MustCompile(`^(?:\xEF\xBB\xBF)?\s*<\?xml\b[^>]*?(\s+encoding\s*=\s*["']([A-Za-z0-9._:-]+)["'])`)

// toUTF8 converts a text that says that it has another encoding, or shows it by its zero bytes. The byte order mark and
// the declared encoding are removed then. Other texts are returned unchanged.
func toUTF8(src *bufio.Reader) (*bufio.Reader, error) {
	head, err := src.Peek(1024)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return nil, apierr.MalformedReport("the report is a ZIP archive; upload the report in it")
	}
	from := wideEncoding(head)
	if from == nil {
		from = declaredEncoding(head)
	}
	if from != nil {
		src = bufio.NewReaderSize(from.NewDecoder().Reader(src), copySize)
	}
	return withoutDeclaration(src)
}

// wideEncoding returns UTF-16 or UTF-32 if the text begins with their byte order mark, or with an ASCII character of
// them.
func wideEncoding(head []byte) encoding.Encoding {
	if len(head) < 4 {
		head = append(bytes.Clone(head), 1, 1, 1, 1) // no zero byte
	}
	zero := func(i int) bool { return head[i] == 0 }
	switch {
	case bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF}), zero(0) && zero(1) && zero(2) && !zero(3):
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}), !zero(0) && zero(1) && zero(2) && zero(3):
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}), zero(0) && !zero(1) && zero(2) && !zero(3):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), !zero(0) && zero(1) && !zero(2) && zero(3):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	}
	return nil
}

// declaredEncoding returns the encoding that an XML document declares, unless it is UTF-8 or cannot be true.
func declaredEncoding(head []byte) encoding.Encoding {
	declared := xmlHead.FindSubmatch(head)
	if declared == nil {
		return nil
	}
	known, err := htmlindex.Get(string(declared[2]))
	if err != nil {
		return nil
	}
	switch name, _ := htmlindex.Name(known); name {
	case "utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined":
		return nil // a text of one byte a character that declares UTF-16 is UTF-8
	}
	return known
}

// withoutDeclaration removes the declared encoding of an XML document, which is UTF-8 now.
func withoutDeclaration(src *bufio.Reader) (*bufio.Reader, error) {
	head, err := src.Peek(1024)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	declared := xmlHead.FindSubmatchIndex(head)
	if declared == nil {
		return src, nil
	}
	from, to := declared[2], declared[3]
	start := bytes.Clone(head[:from])
	if _, err := src.Discard(to); err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(start), src), copySize), nil
}

// utf8Writer refuses texts that are not UTF-8, because their paths and messages would be stored damaged.
type utf8Writer struct {
	out  io.Writer
	n    int64  // bytes before rest
	rest []byte // the beginning of a character
}

func (w *utf8Writer) Write(p []byte) (int, error) {
	text := p
	if len(w.rest) > 0 {
		text = append(w.rest, p...)
	}
	whole := len(text)
	if !utf8.Valid(text) {
		if whole = incomplete(text); !utf8.Valid(text[:whole]) {
			return 0, notUTF8(w.n, text)
		}
	}
	if at := bytes.IndexByte(text[:whole], 0); at >= 0 {
		return 0, apierr.MalformedReport("the report has a NUL byte at byte %d: it is not a text, or it is damaged", w.n+int64(at))
	}
	if _, err := w.out.Write(text[:whole]); err != nil {
		return 0, err
	}
	w.n += int64(whole)
	w.rest = bytes.Clone(text[whole:])
	return len(p), nil
}

// incomplete returns the start of the character at the end of a text that may continue, or the end of the text.
func incomplete(text []byte) int {
	for i := len(text) - 1; i >= max(len(text)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			return i
		}
	}
	return len(text)
}

// close refuses a text that ends within a character.
func (w *utf8Writer) close() error {
	if len(w.rest) > 0 {
		return notUTF8(w.n, w.rest)
	}
	return nil
}

func notUTF8(start int64, text []byte) error {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	return apierr.MalformedReport("the report is not UTF-8 at byte %d; it may be GBK or Latin-1: write it as UTF-8, for example with "+
		"iconv -f GBK -t UTF-8", start+int64(at))
}
