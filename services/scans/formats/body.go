package formats

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
)

// maxBeginning is how much of a body is compared with the beginnings of other files, in bytes.
const maxBeginning = 8 << 10

// beginning returns the first bytes of a document.
func beginning(src io.ReadSeeker) ([]byte, error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind the report: %w", err)
	}
	head := make([]byte, maxBeginning)
	n, err := io.ReadFull(src, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return head[:n], nil
}

// magics are the beginnings of files that are no text.
var magics = []struct{ prefix, what string }{
	{"BZh", "compressed with bzip2: unpack it (bzip2 -d), or compress it with gzip"},
	{"\xFD7zXZ\x00", "compressed with xz: unpack it (xz -d), or compress it with gzip"},
	{"\x28\xB5\x2F\xFD", "compressed with zstd: unpack it (zstd -d), or compress it with gzip"},
	{"7z\xBC\xAF\x27\x1C", "a 7z archive: upload the report in it"},
	{"Rar!\x1A\x07", "a RAR archive: upload the report in it"},
	{"%PDF-", "a PDF document: export the report as SARIF or JSON"},
}

// page matches the beginning of an HTML page.
var page = regexp.MustCompile(`(?is)^(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b`)

// texts are the beginnings of texts that are no reports. They are compared after white space.
var texts = []struct {
	pattern *regexp.Regexp
	what    string
}{
	{regexp.MustCompile(`(?i)^--[^\r\n]+\r?\nContent-(Disposition|Type):`),
		"this is multipart: send the file as the body (curl --data-binary @report.sarif, not -F)"},
	{regexp.MustCompile(`^HTTP/\d`), "this is an HTTP response with its headers: write only its body to the file (curl without -i)"},
	{regexp.MustCompile(`^[\w.\[\]%+-]+=(%7[Bb]|%5[Bb]|%3[Cc]|[^\s"]*&[\w.\[\]%+-]+=|[\[{<])`),
		"this is a form: send the file as the body (curl --data-binary @report.sarif, without a name and =)"},
	{regexp.MustCompile(`^@?[\w./\\-]+\.(sarif|json|xml)\s*$`),
		"this is the name of a file: send its content (curl --data-binary @report.sarif, with the @)"},
	{regexp.MustCompile(`^File,Line,Column,DefaultLevel,Level,`), "this is Flawfinder CSV: run flawfinder with --sarif"},
	{regexp.MustCompile(`^[A-Za-z0-9+/]{40,}[A-Za-z0-9+/\s]*={0,2}\s*$`), "this is base64: decode it (base64 -d report.b64)"},
	{regexp.MustCompile(`^(%YAML|---\s|[\w-]+:\s[^\r\n]*\r?\n\s*[\w-]+:|[\w-]+:\s*\r?\n\s*(- )?[\w-]+:)`), "this is YAML: " + toJSON},
	{regexp.MustCompile(`^[^,;\t\r\n]*([,;\t][^,;\t\r\n]*){2,}\r?\n`), "this is CSV: " + toJSON},
}

// scalar matches JSON that is no object, list or string.
var scalar = regexp.MustCompile(`^(true|false|null|-?[\d.eE+-]+)\s*$`)

// checkBody returns an [*UnknownError] for a document that is neither JSON nor XML, if it is known what it is.
func checkBody(head []byte) error {
	if err := CheckBeginning(head); err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xFF\xFE")), bytes.HasPrefix(head, []byte("\xFE\xFF")):
		return nil // UTF-16
	case bytes.IndexByte(head, 0) >= 0:
		return &UnknownError{"the report is a binary file: it has a NUL byte at byte " + fmt.Sprint(bytes.IndexByte(head, 0))}
	}
	return checkText(head)
}

// CheckBeginning returns an error if a body begins like an archive or a compressed or binary file, whatever its
// encoding.
func CheckBeginning(head []byte) error {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return &UnknownError{"the report is " + m.what}
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")) && bytes.Contains(head, []byte("audit.fvdl")):
		return &UnknownError{"this is a Fortify FPR: export the issues from Fortify as SARIF (fcli), or " + toJSON}
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return &UnknownError{"the report is a ZIP archive: upload the report in it (unzip -p report.zip report.sarif)"}
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return &UnknownError{"the report is a tar archive: upload the report in it (tar -xOf report.tar report.sarif)"}
	}
	return nil
}

// checkText returns an error if a text is no report.
func checkText(head []byte) error {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xEF\xBB\xBF")), " \t\r\n")
	if len(text) == 0 && len(head) > 0 && len(head) < maxBeginning {
		return &UnknownError{"the report has only white space: the scanner wrote nothing"}
	}
	if page.Match(text) {
		return &UnknownError{"this is an HTML page, perhaps of a login or a proxy: look at the step that wrote the file, at the URL and the token"}
	}
	if len(text) == 0 || bytes.IndexByte([]byte(`{[<"`), text[0]) >= 0 {
		return nil // it may be JSON or XML
	}
	for _, t := range texts {
		if t.pattern.Match(text) {
			return &UnknownError{t.what}
		}
	}
	if !scalar.Match(text) {
		return &UnknownError{"this is a text, and neither JSON nor XML, perhaps the log of the scanner: write its report to a file"}
	}
	return nil
}
