package store

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"
)

// longTransaction is from when on what a transaction has logged is not moved into the file by its commit.
const longTransaction = time.Second

// checkpoints move what long transactions have logged into the file of SQLite. SQLite itself does it in the commit:
// that of a large import would move gigabytes, with all who want to write behind it. So it is done after such a commit,
// on a connection of its own, by a thread to which all others of the process are preferred. Short transactions leave it
// to SQLite.
type checkpoints struct {
	path   string
	writer *sql.DB

	ctx     context.Context
	stop    context.CancelFunc
	all     sync.WaitGroup
	unmoved atomic.Int64 // transactions whose checkpoint is not over
	one     sync.Mutex   // at a time
}

func newCheckpoints(path string) *checkpoints {
	ctx, stop := context.WithCancel(context.Background())
	return &checkpoints{path: path, ctx: ctx, stop: stop}
}

// expect says that a long transaction is being committed. What it has logged is moved when moveAside has been called.
func (c *checkpoints) expect() { c.unmoved.Add(1) }

// expected reports whether SQLite must not make a checkpoint now.
func (c *checkpoints) expected() bool { return c.unmoved.Load() > 0 }

// moveAside is called after each transaction that was expected, committed or not.
func (c *checkpoints) moveAside() {
	c.all.Go(func() {
		defer c.unmoved.Add(-1)
		c.one.Lock()
		defer c.one.Unlock()
		// An error is no loss: what is in the log is safe there, and the next commit moves it.
		_ = unhurried(c.move)
		// The writer does not write during this one, so that the log can begin anew: beside one who never rests there would
		// always be something that is not moved yet.
		_, _ = c.writer.ExecContext(c.ctx, passive)
	})
}

const passive = "PRAGMA wal_checkpoint(PASSIVE)"

func (c *checkpoints) move() error {
	db := sql.OpenDB(sqliteConnector{sqliteDSN(c.path, "_synchronous="+synchronous)})
	defer db.Close()
	_, err := db.ExecContext(c.ctx, passive)
	return err
}

// close ends a checkpoint that runs. Whoever closes the file last makes one.
func (c *checkpoints) close() {
	c.stop()
	c.all.Wait()
}
