package scans

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/scans/scanner"
)

// scannerMessage is a message of an upload by a scanner.
type scannerMessage interface {
	GetScanId() string
	GetTarget() *scansv1.ScannerBody
	GetChunk() []byte
}

// scannerBody is the JSON document of a scanner as one decompressed stream.
type scannerBody struct {
	receive func() (scannerMessage, error)
	first   scannerMessage
	rest    []byte
}

// newScannerBody receives the first message, which names the scan.
func newScannerBody(receive func() (scannerMessage, error)) (*scannerBody, error) {
	first, err := receive()
	if errors.Is(err, io.EOF) {
		return nil, apierr.InvalidArgument("scan_id", "scan_id is required in the first message; got no message")
	}
	if err != nil {
		return nil, err
	}
	return &scannerBody{receive: receive, first: first, rest: first.GetChunk()}, nil
}

// Read implements io.Reader over the chunks.
func (b *scannerBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		message, err := b.receive()
		if err != nil {
			return 0, err // io.EOF after the last message
		}
		if message.GetTarget() != nil || message.GetScanId() != "" {
			return 0, apierr.InvalidArgument("scan_id", "scan_id and target belong to the first message only")
		}
		b.rest = message.GetChunk()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// plain is the decompressed document.
func (b *scannerBody) plain() (io.Reader, error) {
	src := bufio.NewReaderSize(b, 64<<10)
	head, err := src.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		if b.first.GetTarget().GetContentEncoding() == "gzip" {
			return nil, apierr.MalformedJSON("the content encoding is gzip, but the body is not compressed")
		}
		return src, nil
	}
	unzipped, err := gzip.NewReader(src)
	if err != nil {
		return nil, apierr.MalformedJSON("the body is not valid gzip")
	}
	return unzipped, nil
}

// scannerError converts errors in the body to API errors. It returns errors of the server unchanged.
func scannerError(err error) error {
	var syntax *scanner.SyntaxError
	var limit *scanner.LimitError
	switch {
	case errors.As(err, &syntax):
		return apierr.MalformedJSON("%v", err)
	case errors.As(err, &limit):
		return apierr.TooLarge("%v", err)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return apierr.MalformedJSON("the body is not valid gzip: it is cut off or damaged")
	}
	return err
}

// openedScan finds the scan with the id that the scanner got when it opened the scan.
func (s *ScannerProtocol) openedScan(ctx context.Context, id string) (*ent.Scan, error) {
	unknown := apierr.NotFound("scan %s not found", apierr.Quote(id))
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 {
		return nil, unknown
	}
	row, err := s.store.Reader.Scan.Query().Where(scan.ID(number), scan.ScannerNotNil()).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	if ok, err := mayUploadScan(ctx, s.store.Reader, row); err != nil || !ok {
		return nil, cmp.Or(err, unknown)
	}
	return row, nil
}

// lockScan reads a scan and locks it until the end of the transaction.
func lockScan(ctx context.Context, tx *ent.Tx, postgres bool, id int64) (*ent.Scan, error) {
	query := tx.Scan.Query().Where(scan.ID(id))
	if postgres {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("scan \"%d\" not found", id) // deleted with its project just now
	}
	return row, err
}

// limits are the limits of what a scanner may send.
func (s *ScannerProtocol) limits() scanner.Limits {
	limits := scanner.DefaultLimits()
	limits.MaxBytes = s.options.MaxBytes
	return limits
}

// framesFile holds frames until they are stored. The file has no name, so it disappears when it is closed or the server
// is killed.
type framesFile struct {
	*scanner.Writer
	file *spool.File
}

func newFramesFile(space spool.Space) (*framesFile, error) {
	file, err := space.Receive("results")
	if err != nil {
		return nil, err
	}
	writer, err := scanner.NewWriter(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &framesFile{writer, file}, nil
}

// close deletes the frames.
func (f *framesFile) close() { _ = f.file.Close() }

// done ends the stream of frames and rewinds the file.
func (f *framesFile) done() (io.Reader, error) {
	if err := f.Writer.Close(); err != nil {
		return nil, err
	}
	_, err := f.file.Seek(0, io.SeekStart)
	return f.file, err
}
