package export

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/intake"
)

const (
	// maxLine limits a record: a finding with its whole history.
	maxLine = 16 << 20
	// recordsAtOnce and bytesAtOnce limit what one transaction imports.
	recordsAtOnce = 500
	bytesAtOnce   = 4 << 20
)

// ImportFindings imports a file, some records per transaction. What is stored stays if a later record is invalid: the
// file can be sent again, since findings that exist are left alone.
func (s *Exports) ImportFindings(stream grpc.ClientStreamingServer[findingsv1.ImportFindingsRequest, findingsv1.ImportFindingsResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.InvalidArgument("deployment_slug", "the first message must name the deployment; got no message")
	}
	if err != nil {
		return err
	}
	body := intake.Chunks(first, stream.Recv, func(m *findingsv1.ImportFindingsRequest) bool { return m.GetTarget() != nil })
	if first.GetTarget().GetContentEncoding() == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return damaged(err, 1)
		}
	}
	deploymentID, _ := tenant.FromContext(ctx)
	i := &importer{store: s.store, deploymentID: deploymentID, projects: map[string]*ent.Project{}, rules: map[ruleName]int64{}, scans: map[int64]int64{}, taken: map[int64]bool{},
		merged: map[int64]*storev1.ExportedIdentity{}, actors: map[actorName]int64{}}
	if err := i.read(ctx, body); err != nil {
		return err
	}
	return stream.SendAndClose(&i.done)
}

// read imports the records of a file.
func (i *importer) read(ctx context.Context, body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var records []numbered
	size, findings, ended := 0, int64(0), false
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		record, err := parse(line)
		if err != nil {
			return malformed(number, "%v", err)
		}
		if err := check(record); err != nil {
			return malformed(number, "%v", err)
		}
		switch header := record.GetHeader(); {
		case ended:
			return malformed(number, "a record after the end")
		case number == 1 && header == nil:
			return malformed(number, `it is no export: want {"header":{"version":%d}}`, version)
		case header != nil && (number != 1 || header.GetVersion() != version):
			return malformed(number, "version %d is not known; this server reads version %d", header.GetVersion(), version)
		case record.GetEnd() != nil:
			ended = true
			if n := record.GetEnd().GetFindings(); n != findings {
				return malformed(number, "the file should have %d findings, it has %d", n, findings)
			}
			continue
		case record.GetFinding() != nil:
			findings++
		}
		records, size = append(records, numbered{record, number}), size+len(line)
		if len(records) >= recordsAtOnce || size >= bytesAtOnce {
			if err := i.store.Write(ctx, i.storing(records)); err != nil {
				return err
			}
			records, size = records[:0], 0
		}
	}
	if err := lines.Err(); err != nil {
		return damaged(err, number+1)
	}
	if !ended {
		return apierr.MalformedReport("the file is cut off after line %d: its last record is missing", number)
	}
	return i.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := i.storing(records)(ctx, tx); err != nil {
			return err
		}
		if err := i.merge(ctx, tx); err != nil {
			return err
		}
		audit.Change(ctx, "findings_import", i.deploymentID, nil, &i.done)
		return nil
	})
}

func parse(line []byte) (*storev1.ExportRecord, error) {
	record := &storev1.ExportRecord{}
	if err := protojson.Unmarshal(line, record); err != nil {
		return nil, errors.New("it is no record of an export")
	}
	if record.GetRecord() == nil {
		return nil, errors.New("it is empty")
	}
	if bytes.Contains(line, []byte(`\u0000`)) {
		return nil, errors.New("it has a text with a zero byte")
	}
	return record, nil
}

func malformed(line int, format string, args ...any) error {
	return apierr.MalformedReport("line %d: "+format, append([]any{line}, args...)...)
}

// damaged is the error of a body that cannot be read.
func damaged(err error, line int) error {
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return malformed(line, "it has more than %d bytes", maxLine)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return apierr.MalformedReport("the file is not valid gzip: it is cut off or damaged")
	}
	return err
}
