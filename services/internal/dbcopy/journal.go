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

// journalTable has the position of each table while a copy is incomplete.
const journalTable = "palisade_copy"

const (
	journalCreate = `CREATE TABLE IF NOT EXISTS ` + journalTable + ` (
		name TEXT NOT NULL PRIMARY KEY, last_key TEXT NOT NULL, row_count BIGINT NOT NULL, byte_count BIGINT NOT NULL, checksum TEXT NOT NULL)`
	// The parameters appear in order, because SQLite numbers them by appearance.
	journalSet = `INSERT INTO ` + journalTable + ` (name, last_key, row_count, byte_count, checksum) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (name) DO UPDATE SET last_key = excluded.last_key, row_count = excluded.row_count,
			byte_count = excluded.byte_count, checksum = excluded.checksum`
)

// header is the journal row without a table. It has the options of the copy. Options that change rows must be the
// same when the copy is resumed.
type header struct {
	From        string
	StartedAt   time.Time
	ReplaceText bool
	RequeueJobs bool
}

// journal is the state of the copy that the target has.
type journal struct {
	header    header
	resumed   bool
	positions map[string]position
}

// openJournal reads the journal of an unfinished copy, or starts one in an empty target.
func openJournal(ctx context.Context, target *database, begin header) (*journal, error) {
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
			return nil, fmt.Errorf("check whether the target is empty: %w", err)
		}
		if filled {
			return nil, fmt.Errorf("%w: table %s of %s has rows, and no copy into it was started; copy into a new database", ErrNotEmpty, t.name, target.location)
		}
	}
	if _, err := target.db.ExecContext(ctx, journalCreate); err != nil {
		return nil, fmt.Errorf("start the copy: %w", err)
	}
	text, err := json.Marshal(begin)
	if err != nil {
		return nil, err
	}
	if _, err := target.db.ExecContext(ctx, journalSet, "", string(text), 0, 0, ""); err != nil {
		return nil, fmt.Errorf("start the copy: %w", err)
	}
	return &journal{header: begin, positions: map[string]position{}}, nil
}

// readJournal returns nil when the journal table exists without a header.
func readJournal(ctx context.Context, target *database) (*journal, error) {
	rows, err := target.db.QueryContext(ctx, "SELECT name, last_key, row_count, byte_count, checksum FROM "+journalTable)
	if err != nil {
		return nil, fmt.Errorf("read the journal of the copy: %w", err)
	}
	defer func() { _ = rows.Close() }()
	j := &journal{positions: map[string]position{}}
	for rows.Next() {
		var name string
		var m position
		if err := rows.Scan(&name, &m.key, &m.rows, &m.bytes, &m.checksum); err != nil {
			return nil, fmt.Errorf("read the journal of the copy: %w", err)
		}
		if name != "" {
			j.positions[name] = m
			continue
		}
		if err := json.Unmarshal([]byte(m.key), &j.header); err != nil {
			return nil, fmt.Errorf("read the journal of the copy: %w", err)
		}
		j.resumed = true
	}
	if err := rows.Err(); err != nil || !j.resumed {
		return nil, err
	}
	return j, nil
}

// ErrUnfinished means that a copy was started and is incomplete.
var ErrUnfinished = errors.New("has not ended")

// Unfinished returns ErrUnfinished when an incomplete copy into the data directory exists and the directory has no
// database yet.
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

// UnfinishedPostgres returns ErrUnfinished when an incomplete copy into the database exists: rows are missing.
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
		j.header.From, target.location, j.header.StartedAt.UTC().Format(time.DateTime), ErrUnfinished)
}

// check rejects options that differ from the options of the unfinished copy.
func (j *journal) check(now header) error {
	if j.header.ReplaceText != now.ReplaceText || j.header.RequeueJobs != now.RequeueJobs {
		return fmt.Errorf("the copy of %s was started with --replace-text=%t and --requeue-jobs=%t: use the same options, or copy into a new database",
			j.header.StartedAt.UTC().Format(time.DateTime), j.header.ReplaceText, j.header.RequeueJobs)
	}
	return nil
}

func (d *database) hasTable(ctx context.Context, name string) (exists bool, err error) {
	query := "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)"
	if d.postgres {
		query = "SELECT to_regclass(quote_ident($1)) IS NOT NULL"
	}
	if err := d.db.QueryRowContext(ctx, query, name).Scan(&exists); err != nil {
		return false, fmt.Errorf("check the tables of %s: %w", d.location, err)
	}
	return exists, nil
}

// targetLock is the key of the advisory lock of a copy into PostgreSQL. No other lock uses it.
const targetLock = 7_034_213_991_002

// lockTarget locks the target against other copies. held checks that the lock was never lost. A SQLite target needs
// no lock, because only this process has it.
//
// The lock belongs to a transaction. Behind a pooler, a session lock would stay with a connection that is given to
// others.
func lockTarget(ctx context.Context, target *database) (held func(context.Context) error, release func(), err error) {
	if !target.postgres {
		return func(context.Context) error { return nil }, func() {}, nil
	}
	tx, err := target.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, nil, err
	}
	release = func() { _ = tx.Rollback() } // nothing was written; the lock is released in any case
	var got bool
	err = tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(targetLock)).Scan(&got)
	if err == nil && !got {
		err = fmt.Errorf("%s %w: another copy into it is running", target.location, ErrInUse)
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
			return fmt.Errorf("%s: %w (%w): run the same command again to resume the copy; use the address of the database itself, not of a pooler",
				target.location, ErrLockLost, err)
		}
		return nil
	}
	return held, release, nil
}
