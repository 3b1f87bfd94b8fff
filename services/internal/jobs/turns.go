package jobs

import (
	"slices"
	"sync"
	"time"
)

// upkeep stands for the deployment of jobs that have none: they are for the whole installation.
const upkeep int64 = 0

// mostRuns bounds what a node remembers of the runs of deployments.
const mostRuns = 10_000

// turn is one job that may begin: the first that waits in a run of a deployment.
type turn struct{ deployment, run, job int64 }

// turns decide which jobs of one queue begin next on this node (docs/decisions/0023-turns.md says why):
//
//   - Jobs of no deployment go first. They are few: each kind waits once.
//   - Then each deployment that has jobs gets one in its turn, and in it each run. Inside a run River's order holds.
//   - A deployment gets another place only while fewer of its jobs run here than places are free. So one alone fills half of them,
//     and another one that comes later finds a place, however long those jobs take.
type turns struct {
	mu sync.Mutex
	// last is the deployment that had the last turn.
	last int64
	// runs are the run of each deployment that had its last turn.
	runs map[int64]int64
	// running counts the jobs of each deployment that run here, and owners says whose each is, those of upkeep included.
	running map[int64]int
	owners  map[int64]int64

	poll  time.Duration // how long the database is not asked without a reason
	asked time.Time
	// more: jobs were left waiting. ended: one has ended since.
	more, ended bool
}

func newTurns(poll time.Duration) *turns {
	return &turns{poll: poll, runs: map[int64]int64{}, running: map[int64]int{}, owners: map[int64]int64{}}
}

// due reports whether the database should be asked now: after the time of a poll, or when a job ended while others were
// waiting.
func (t *turns) due(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.asked) < t.poll && !(t.more && t.ended) {
		return false
	}
	t.asked, t.ended = now, false
	return true
}

// left notes whether jobs were left waiting.
func (t *turns) left(more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more = more
}

// lookAt says after which deployment the next turn is, and how many deployments are enough to fill the free places: of
// any more than those that have jobs running, each may have one.
func (t *turns) lookAt(free int) (last int64, deployments int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, free + len(t.running)
}

// lastRun is the run of a deployment that had its last turn; -1 is none.
func (t *turns) lastRun(deployment int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run, ok := t.runs[deployment]; ok {
		return run
	}
	return -1
}

// admits reports whether a deployment may have one of the free places.
func (t *turns) admits(deployment int64, free int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return free > 0 && (deployment == upkeep || t.running[deployment] < free)
}

// begin notes that a job has got a place.
func (t *turns) begin(c turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.owners[c.job]; ok {
		return
	}
	t.owners[c.job] = c.deployment
	if c.deployment == upkeep {
		return
	}
	if len(t.runs) >= mostRuns {
		clear(t.runs)
	}
	t.last, t.runs[c.deployment] = c.deployment, c.run
	t.running[c.deployment]++
}

// end notes that a job has given its place back, or has not got it. It may be called again.
func (t *turns) end(job int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	deployment, ok := t.owners[job]
	if !ok {
		return
	}
	t.ended = true
	delete(t.owners, job)
	if deployment == upkeep {
		return
	}
	if t.running[deployment]--; t.running[deployment] == 0 {
		delete(t.running, deployment)
	}
}

// choose fills free places from the deployments that have jobs, in the order of their turns, and notes that those jobs
// begin. next finds for each deployment the next job that is not among those chosen, and leaves those out that have
// none. more tells whether jobs may be left.
func (t *turns) choose(free int, waiting []int64, next func(deployments []int64, chosen []turn) ([]turn, error)) (chosen []turn, more bool, err error) {
	waiting = slices.Clone(waiting)
	for free > 0 && len(waiting) > 0 {
		may := waiting[:1] // upkeep, all of it before others
		if waiting[0] != upkeep {
			may = slices.DeleteFunc(slices.Clone(waiting), func(deployment int64) bool { return !t.admits(deployment, free) })
		}
		if len(may) == 0 {
			break
		}
		found, err := next(may, chosen)
		if err != nil {
			return chosen, true, err
		}
		none := map[int64]bool{}
		for _, deployment := range may {
			none[deployment] = true
		}
		for _, c := range found {
			delete(none, c.deployment)
			if t.admits(c.deployment, free) {
				t.begin(c)
				chosen = append(chosen, c)
				free--
			}
		}
		waiting = slices.DeleteFunc(waiting, func(deployment int64) bool { return none[deployment] })
	}
	return chosen, len(waiting) > 0, nil
}
