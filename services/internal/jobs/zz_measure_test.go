package jobs

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/pgtest"
)

func cpu() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func TestZZ(t *testing.T) {
	for _, o := range []store.Options{{DataDir: t.TempDir()}, {Database: pgtest.NewDatabase(t)}} {
		st := openStore(t, o)
		log, _ := newLogger(t)
		j := start(t, st, log, Work{Register: newNotes().register})
		time.Sleep(10 * time.Second)
		a := cpu()
		time.Sleep(60 * time.Second)
		fmt.Println("pg", st.Postgres(), "cpu", cpu()-a)
		stop(t, j)
		a = cpu()
		time.Sleep(20 * time.Second)
		fmt.Println("none: cpu per 20s", cpu()-a)
	}
}
