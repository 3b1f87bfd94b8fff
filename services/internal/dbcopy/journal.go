package dbcopy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/palisade/palisade/services/internal/store"
)

// journalTable holds, while a copy is not complete, how far each table of the target has come.
const journalTable = "palisade_copy"

const (
	journalCreate = `CREATE TABLE IF NOT EXISTS ` + journalTable + ` (
		name TEXT NOT NULL PRIMARY KEY, last_key TEXT NOT NULL, row_count BIGINT NOT NULL, byte_count BIGINT NOT NULL, checksum TEXT NOT NULL)`
	// The parameters stand in their order: SQLite counts them by it.
	journalSet = `INSERT INTO ` + journalTable + ` (name, last_key, row_count, byte_count, checksum) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (name) DO UPDATE SET last_key = excluded.last_key, row_count = excluded.row_count,
			byte_count = excluded.byte_count, checksum = excluded.checksum`
)

// heading is the row of the journal without a table: what the copy was started as. What changes the copied rows must be
// the same when it goes on.
type heading struct {
	From        string
	StartedAt   time.Time
	ReplaceText bool
	RequeueJobs bool
}

// journal is what the target knows of the copy.
type journal struct {
	heading heading
	resumed bool
	marks   map[string]mark
}

// openJournal reads the journal of a copy that goes on, or begins one on a target without any row.
func openJournal(ctx context.Context, target *database, begin heading) (*journal, error) {
	exists, err := target.hasTable(ctx, journalTable)
	if err != nil {
		return nil, err
	}
	if exists {
		j, err := readJournal(ctx, target)
		if err != nil || j != nil {
			return j, err
		}
	}
	for _, t := range allTables() {
		var filled bool
		if err := target.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+quote(t.name)+")").Scan(&filled); err != nil {
			return nil, fmt.Errorf("look into the target: %w", err)
		}
		if filled {
			return nil, fmt.Errorf("%w: table %s of %s has rows, and no copy into it was begun; copy into a new database", ErrNotEmpty, t.name, target.location)
		}
	}
	if _, err := target.db.ExecContext(ctx, journalCreate); err != nil {
		return nil, fmt.Errorf("begin the copy: %w", err)
	}
	text, err := json.Marshal(begin)
	if err != nil {
		return nil, err
	}
	if _, err := target.db.ExecContext(ctx, journalSet, "", string(text), 0, 0, ""); err != nil {
		return nil, fmt.Errorf("begin the copy: %w", err)
	}
	return &journal{heading: begin, marks: map[string]mark{}}, nil
}

// readJournal returns nil when the journal was created, but nothing begun.
func readJournal(ctx context.Context, target *database) (*journal, error) {
	rows, err := target.db.QueryContext(ctx, "SELECT name, last_key, row_count, byte_count, checksum FROM "+journalTable)
	if err != nil {
		return nil, fmt.Errorf("read how far the copy has come: %w", err)
	}
	defer func() { _ = rows.Close() }()
	j := &journal{marks: map[string]mark{}}
	for rows.Next() {
		var name string
		var m mark
		if err := rows.Scan(&name, &m.key, &m.rows, &m.bytes, &m.checksum); err != nil {
			return nil, fmt.Errorf("read how far the copy has come: %w", err)
		}
		if name != "" {
			j.marks[name] = m
			continue
		}
		if err := json.Unmarshal([]byte(m.key), &j.heading); err != nil {
			return nil, fmt.Errorf("read how the copy was begun: %w", err)
		}
		j.resumed = true
	}
	if err := rows.Err(); err != nil || !j.resumed {
		return nil, err
	}
	return j, nil
}

// ErrUnfinished says that a copy was begun and has not come to its end.
var ErrUnfinished = errors.New("has not ended")

// Unfinished returns ErrUnfinished when a copy into the data directory, where nothing else is yet, was begun and has
// not come to its end.
func Unfinished(dataDir string) error {
	e := Endpoint{SQLite: filepath.Join(dataDir, store.SQLiteFile)}
	if _, err := os.Stat(e.SQLite); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(stagedFile(e)); err != nil {
		return nil //nolint:nilerr // none that can be gone on with
	}
	return fmt.Errorf("a copy into %s was begun and %w: finish it with the same `palisade migrate copy`, or remove %s to start without it",
		dataDir, ErrUnfinished, e.stagingDir())
}

// UnfinishedPostgres returns ErrUnfinished when a copy into the database was begun and has not come to its end: rows
// are missing.
func UnfinishedPostgres(ctx context.Context, st *store.Store) error {
	reader, _ := st.DB()
	target := &database{db: reader, postgres: true, location: st.Location()}
	exists, err := target.hasTable(ctx, journalTable)
	if err != nil || !exists {
		return err
	}
	j, err := readJournal(ctx, target)
	if err != nil || j == nil {
		return err
	}
	return fmt.Errorf("a copy of %s into %s was begun at %s UTC and %w: finish it with the same `palisade migrate copy`, or use another database",
		j.heading.From, target.location, j.heading.StartedAt.UTC().Format(time.DateTime), ErrUnfinished)
}

// check refuses to go on in another way than the copy began.
func (j *journal) check(now heading) error {
	if j.heading.ReplaceText != now.ReplaceText || j.heading.RequeueJobs != now.RequeueJobs {
		return fmt.Errorf("the copy of %s was begun with --replace-text=%t and --requeue-jobs=%t: go on with the same, or copy into a new database",
			j.heading.StartedAt.UTC().Format(time.DateTime), j.heading.ReplaceText, j.heading.RequeueJobs)
	}
	return nil
}

func (d *database) hasTable(ctx context.Context, name string) (exists bool, err error) {
	query := "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)"
	if d.postgres {
		query = "SELECT to_regclass(quote_ident($1)) IS NOT NULL"
	}
	if err := d.db.QueryRowContext(ctx, query, name).Scan(&exists); err != nil {
		return false, fmt.Errorf("look into %s: %w", d.location, err)
	}
	return exists, nil
}

// targetLock is the number of the lock that a copy into PostgreSQL has: any that nobody else uses.
const targetLock = 7_034_213_991_002

// lockTarget makes sure that no other copy into the same target runs; held tells whether that was so until now. On
// SQLite the target is ours alone as it is.
//
// The lock is that of a transaction: behind a pooler one of a session would stay with a connection that others get
// next.
func lockTarget(ctx context.Context, target *database) (held func(context.Context) error, release func(), err error) {
	if !target.postgres {
		return func(context.Context) error { return nil }, func() {}, nil
	}
	tx, err := target.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, nil, err
	}
	release = func() { _ = tx.Rollback() } // it changed nothing, and the lock goes with it in any case
	var got bool
	err = tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(targetLock)).Scan(&got)
	if err == nil && !got {
		err = fmt.Errorf("%s %w: another copy into it runs", target.location, ErrInUse)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	held = func(ctx context.Context) error {
		if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
			return fmt.Errorf("%s: %w (%w): the same command goes on with the copy; give it the address of the database itself, not of a pooler",
				target.location, ErrLockLost, err)
		}
		return nil
	}
	return held, release, nil
}
