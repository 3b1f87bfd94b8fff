package store

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// longTransaction is the duration from which a transaction's commit skips the checkpoint and leaves it to the
// background.
const longTransaction = time.Second

// checkpoints moves the write-ahead log of long transactions into the SQLite file in the background.
//
// SQLite runs a checkpoint inside a commit. After a large import it would move gigabytes while all other writers
// wait. For a long transaction it therefore runs after the commit, on its own connection and a thread of low
// priority. Short transactions leave it to SQLite.
type checkpoints struct {
	path   string
	writer *sql.DB

	ctx      context.Context
	stop     context.CancelFunc
	all      sync.WaitGroup
	deferred atomic.Int64 // transactions that wait for their checkpoint
	running  sync.Mutex   // serializes the checkpoints
}

func newCheckpoints(path string) *checkpoints {
	ctx, stop := context.WithCancel(context.Background())
	return &checkpoints{path: path, ctx: ctx, stop: stop}
}

// deferOne records that a long transaction is being committed. Call runDeferred after the commit.
func (c *checkpoints) deferOne() { c.deferred.Add(1) }

// isDeferred reports whether commits must not run a checkpoint now.
func (c *checkpoints) isDeferred() bool { return c.deferred.Load() > 0 }

// unmoved returns the size of the log while the background has to move some of it.
func (c *checkpoints) unmoved() int64 {
	if !c.isDeferred() {
		return 0
	}
	log, err := os.Stat(c.path + "-wal")
	if err != nil {
		return 0
	}
	return log.Size()
}

// runDeferred starts the background checkpoint. Call it once after each deferOne, whether the commit succeeded or
// not.
func (c *checkpoints) runDeferred() {
	c.all.Go(func() {
		defer c.deferred.Add(-1)
		c.running.Lock()
		defer c.running.Unlock()
		// An error loses nothing: the log is durable, and the next commit moves it.
		_ = atLowPriority(c.move)
		// The second checkpoint runs on the writer's connection, so that no write runs at the same time. The log can
		// restart only when all of it was moved, which never happens while the writer is busy.
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

// close stops a running checkpoint. SQLite runs one itself when the last connection to the file closes.
func (c *checkpoints) close() {
	c.stop()
	c.all.Wait()
}
