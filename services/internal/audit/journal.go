package audit

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// journalHeader is the size of the header, which has the number of lost entries.
	journalHeader = 32
	// journalSpace is allocated in advance, because the file is written when the disk is full. It holds about 1,500
	// entries of usual size.
	journalSpace = 1 << 20
	// lostMethod is the method of entries that record a loss.
	lostMethod = "audit/lost"
)

// journal is a file beside the store with the pending entries, so that they survive the process. Each entry is a line
// with a MAC and its JSON; a zero byte ends them. All writes go to space that was allocated before.
type journal struct {
	file *os.File // nil: there is no journal
	end  int64    // where the next entry is written
	lost int      // entries that are not in the file
}

// Waiting is the content of a journal.
type Waiting struct {
	// Entries wait for the next start of the server. Lost could not even be written to the file.
	Entries, Lost int
}

// ReadWaiting reads the number of pending entries in a journal, which may be missing.
func ReadWaiting(path string) (Waiting, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Waiting{}, nil
	}
	if err != nil {
		return Waiting{}, fmt.Errorf("pending audit entries: %w", err)
	}
	lines, lost := journalLines(content)
	return Waiting{Entries: len(lines), Lost: lost}, nil
}

// journalLines splits a journal.
func journalLines(content []byte) (lines [][]byte, lost int) {
	if len(content) < journalHeader {
		return nil, 0
	}
	lost, _ = strconv.Atoi(strings.Trim(string(content[:journalHeader]), "\x00\n ")) // an empty header is 0
	text, _, _ := bytes.Cut(content[journalHeader:], []byte{0})
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) { // the last may be cut off
			lines = append(lines, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	return lines, lost
}

// KeepPending keeps pending entries in a file, and takes in the entries of an earlier process. Only the server calls
// it, before the first call is served. Without the file, pending entries are in memory only.
func (t *Trail) KeepPending(ctx context.Context, path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("pending audit entries: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return errors.Join(fmt.Errorf("pending audit entries: %w", err), file.Close())
	}
	if missing := journalSpace - len(content); missing > 0 {
		if _, err := file.WriteAt(make([]byte, missing), int64(len(content))); err != nil {
			t.log.WarnContext(ctx, "no space could be reserved for audit entries that wait while the disk is full", "file", path, "error", err)
		}
	}
	lines, lost := journalLines(content)
	o := &t.pending
	o.mu.Lock()
	defer o.mu.Unlock()
	o.journal = journal{file: file, end: journalHeader}
	for _, line := range lines {
		o.journal.end += int64(len(line)) + 1
		entry, ok := t.readJournal(line)
		if !ok {
			t.log.ErrorContext(ctx, "a pending audit entry was edited, or written with another key; it is left out", "file", path)
			continue
		}
		o.entries = append(o.entries, pendingEntry{AuditEntry: entry, again: true})
	}
	if lost > 0 {
		missing, err := t.lossOf(ctx, lost)
		if err != nil {
			return err
		}
		o.entries = append(o.entries, missing...)
		o.journal.lost = lost
	}
	if len(o.entries) > 0 {
		t.log.WarnContext(ctx, "audit entries of an earlier process are taken in", "entries", len(o.entries), "lost", lost)
		o.timer = time.AfterFunc(0, t.retry)
	}
	return nil
}

// lossOf returns an entry for each deployment: nobody knows whose entries were lost.
func (t *Trail) lossOf(ctx context.Context, lost int) (list []pendingEntry, err error) {
	ids, err := t.store.Reader.Deployment.Query().Order(deployment.ByID()).IDs(tenant.System(ctx))
	for _, id := range ids {
		list = append(list, pendingEntry{again: true, AuditEntry: &ent.AuditEntry{
			DeploymentID: id, ActorKind: KindJob, ActorName: "audit", Method: lostMethod, Code: codes.DataLoss.String(),
			Request: fmt.Sprintf(`{"entries":"%d"}`, lost), At: store.Now(),
		}})
	}
	return list, err
}

func (t *Trail) journalMAC(text []byte) []byte {
	d := t.newDigest(journalPurpose)
	d.bytes(text)
	return d.Sum(nil)
}

func (t *Trail) readJournal(line []byte) (*ent.AuditEntry, bool) {
	mac, text, _ := bytes.Cut(line, []byte(" "))
	sum := make([]byte, sha256.Size)
	if n, err := hex.Decode(sum, mac[:min(len(mac), 2*sha256.Size)]); err != nil || n != sha256.Size || !hmac.Equal(sum, t.journalMAC(text)) {
		return nil, false
	}
	entry := &ent.AuditEntry{}
	return entry, json.Unmarshal(text, entry) == nil
}

// save writes an entry to the journal, or else counts it as lost until the database has it. pendingEntries.mu must be
// held.
func (t *Trail) save(entry *ent.AuditEntry) error {
	j := &t.pending.journal
	if j.file == nil {
		return nil
	}
	text, err := json.Marshal(entry)
	if err == nil {
		line := fmt.Appendf(nil, "%x %s\n\x00", t.journalMAC(text), text)
		if _, err = j.file.WriteAt(line, j.end); err == nil {
			j.end += int64(len(line)) - 1
			return j.file.Sync()
		}
		_, _ = j.file.WriteAt([]byte{0}, j.end) // a part of the line may be there
	}
	j.lost++
	return errors.Join(err, j.writeHeader())
}

func (j *journal) writeHeader() error {
	_, err := j.file.WriteAt(fmt.Appendf(nil, "%*d\n", journalHeader-1, j.lost), 0)
	return errors.Join(err, j.file.Sync())
}

// clear empties the journal when the database has all entries.
func (j *journal) clear() error {
	if j.file == nil || j.end == journalHeader && j.lost == 0 {
		return nil
	}
	j.end, j.lost = journalHeader, 0
	_, err := j.file.WriteAt([]byte{0}, journalHeader)
	return errors.Join(err, j.writeHeader())
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// stored reports whether the database has an entry of the journal already: the process may have ended between the two.
func stored(ctx context.Context, tx *ent.Tx, e *ent.AuditEntry) (bool, error) {
	return tx.AuditEntry.Query().Where(auditentry.RequestID(e.RequestID), auditentry.At(e.At), auditentry.Method(e.Method),
		auditentry.ActorKind(e.ActorKind), auditentry.ActorID(e.ActorID), auditentry.Code(e.Code)).Exist(tenant.NewContext(ctx, e.DeploymentID))
}
