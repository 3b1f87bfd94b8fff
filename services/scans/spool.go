package scans

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"

	"github.com/klauspost/compress/gzip"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/scans/formats"
)

// maxEnvelope is the size of a report wrapped in JSON (see unwrap), which is held in memory.
const maxEnvelope = 64 << 20

// copySize is how much of a report is copied at once.
const copySize = 256 << 10

// envelope matches the beginning of a report wrapped in JSON: {"commit_sha": …, "sarif": "<base64 of gzip>"}.
var envelope = regexp.MustCompile(`^\s*\{\s*"(sarif|commit_sha|commit_oid|ref|checkout_uri|started_at|tool_name|validate)"\s*:`)

// receive writes a decompressed report to an unnamed file, because it is read twice and its size is not known before.
func receive(ctx context.Context, o UploadOptions, encoding string, body io.Reader) (*spool.File, error) {
	src := bufio.NewReaderSize(body, copySize)
	head, err := src.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(head) == 0 {
		return nil, apierr.MalformedReport("the report is empty; send the SARIF file as the body")
	}
	compressed := bytes.HasPrefix(head, []byte{0x1f, 0x8b}) // also without Content-Encoding: a .sarif.gz that is sent unchanged
	switch {
	case compressed:
		return spoolGzip(ctx, o, src)
	case encoding == "gzip":
		return nil, apierr.MalformedReport("the content encoding is gzip, but the report is not compressed")
	}
	if err := formats.CheckBeginning(head); err != nil {
		return nil, apierr.MalformedReport("%v", err)
	}
	text, err := toUTF8(src)
	if err != nil {
		return nil, err
	}
	if head, err = text.Peek(512); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if envelope.Match(head) {
		inner, err := unwrap(ctx, o, text)
		if err != nil {
			return nil, err
		}
		return spoolGzip(ctx, o, bytes.NewReader(inner))
	}
	return spoolText(ctx, o, text)
}

func spoolGzip(ctx context.Context, o UploadOptions, src io.Reader) (*spool.File, error) {
	unzipped, err := gzip.NewReader(src)
	if err != nil {
		return nil, apierr.MalformedReport("the report is not valid gzip")
	}
	text, err := toUTF8(bufio.NewReaderSize(unzipped, copySize))
	var file *spool.File
	if err == nil {
		file, err = spoolText(ctx, o, text)
	}
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, apierr.MalformedReport("the report is not valid gzip: it is cut off or damaged")
	}
	return file, err
}

// spoolText writes a text that has to be UTF-8.
func spoolText(ctx context.Context, o UploadOptions, src io.Reader) (*spool.File, error) {
	file, err := o.Spool.Of(ctx).Receive("report")
	if err != nil {
		return nil, err
	}
	text := &utf8Writer{out: file}
	n, err := io.Copy(text, io.LimitReader(yieldingReader{ctx, o.Calls.Beside(), src}, o.MaxBytes+1))
	if err == nil && n > o.MaxBytes {
		err = tooLarge(o.MaxBytes)
	}
	if err == nil {
		err = text.close()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// unwrap extracts the report from the JSON form that some clients send: base64 of gzip in the field "sarif". The body
// is spooled to disk first, and read into memory only when the upload gets its turn.
func unwrap(ctx context.Context, o UploadOptions, src io.Reader) ([]byte, error) {
	file, err := o.Spool.Of(ctx).Receive("envelope")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file is unnamed, so closing deletes it
	size, err := io.Copy(file, io.LimitReader(yieldingReader{ctx, o.Calls.Beside(), src}, maxEnvelope+1))
	if err != nil {
		return nil, err
	}
	if size > maxEnvelope {
		return nil, apierr.TooLarge("a report wrapped in JSON may have %d bytes; send the report itself as the body", maxEnvelope)
	}
	raw := make([]byte, size)
	if _, err := file.ReadAt(raw, 0); err != nil {
		return nil, err
	}
	var wrapped struct {
		Sarif string `json:"sarif"`
	}
	if err := json.Unmarshal(raw, &wrapped); err != nil || wrapped.Sarif == "" {
		return nil, apierr.MalformedReport(`the body is neither a SARIF report nor JSON with the report in the field "sarif"`)
	}
	inner, err := base64.StdEncoding.DecodeString(wrapped.Sarif)
	if err != nil {
		return nil, apierr.MalformedReport(`the field "sarif" is not valid base64`)
	}
	return inner, nil
}

// yieldingReadSize is how much is read at once while requests compete for the processors. Parsing it takes less than a
// millisecond.
const yieldingReadSize = 16 << 10

// yieldingReader yields the processor to in-flight requests before each read, and stops when its request ends.
type yieldingReader struct {
	ctx  context.Context
	work *traffic.Work
	src  io.Reader
}

func (r yieldingReader) Read(p []byte) (int, error) {
	r.work.Yield(r.ctx)
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.work.Crowded() {
		p = p[:min(len(p), yieldingReadSize)]
	}
	return r.src.Read(p)
}
