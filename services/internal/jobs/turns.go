package jobs

import (
	"slices"
	"sync"
	"time"
)

// noDeployment is the id for jobs of no deployment. They do maintenance of the whole installation.
const noDeployment int64 = 0

// maxRuns bounds the memory of the last run per deployment.
const maxRuns = 10_000

// turn is a job that may begin: the first waiting one in a run of a deployment.
type turn struct{ deployment, run, job int64 }

// turns decides which jobs of a queue begin next on this node (see docs/decisions/0023-turns.md):
//
//   - Jobs of no deployment go first. They are few, because each kind waits only once.
//   - Then each deployment with jobs gets one per turn, and within a deployment each run. Within a run River's order
//     applies.
//   - A deployment gets another slot only while it has fewer running jobs on this node than there are free slots. A
//     deployment that is alone thus fills half of the slots, and one that comes later finds a free slot, even if the
//     jobs take long.
type turns struct {
	mu sync.Mutex
	// last is the deployment that had the last turn.
	last int64
	// runs has the run of each deployment that had its last turn.
	runs map[int64]int64
	// running counts the running jobs of each deployment on this node. owners has the deployment of each of them,
	// including noDeployment.
	running map[int64]int
	owners  map[int64]int64

	poll time.Duration // maximum time until a new job is seen
	// more: jobs were left waiting. ended: a job has ended since.
	more, ended bool
}

func newTurns(poll time.Duration) *turns {
	return &turns{poll: poll, runs: map[int64]int64{}, running: map[int64]int{}, owners: map[int64]int64{}}
}

// freed reports whether a job has ended while others wait, so that one can begin at once.
func (t *turns) freed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	freed := t.more && t.ended
	t.ended = false
	return freed
}

// setMore records whether jobs were left waiting.
func (t *turns) setMore(more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more = more
}

// scanRange returns the deployment of the last turn, and how many deployments must be read to fill the free slots.
// Deployments with running jobs may be refused, so it adds their number.
func (t *turns) scanRange(free int) (last int64, deployments int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, free + len(t.running)
}

// lastRun returns the run of a deployment that had its last turn, or -1.
func (t *turns) lastRun(deployment int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run, ok := t.runs[deployment]; ok {
		return run
	}
	return -1
}

// admits reports whether a deployment may have one of the free slots.
func (t *turns) admits(deployment int64, free int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return free > 0 && (deployment == noDeployment || t.running[deployment] < free)
}

// begin assigns a slot to a job.
func (t *turns) begin(c turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.owners[c.job]; ok {
		return
	}
	t.owners[c.job] = c.deployment
	if c.deployment == noDeployment {
		return
	}
	if len(t.runs) >= maxRuns {
		clear(t.runs)
	}
	t.last, t.runs[c.deployment] = c.deployment, c.run
	t.running[c.deployment]++
}

// end frees the slot of a job that has ended or could not be claimed. It is idempotent.
func (t *turns) end(job int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	deployment, ok := t.owners[job]
	if !ok {
		return
	}
	t.ended = true
	delete(t.owners, job)
	if deployment == noDeployment {
		return
	}
	if t.running[deployment]--; t.running[deployment] == 0 {
		delete(t.running, deployment)
	}
}

// choose fills free slots with jobs of the waiting deployments in order of turns, and assigns the slots. next finds
// the next job of each deployment that is not among the chosen ones, and omits deployments without one. more
// reports whether jobs may be left.
func (t *turns) choose(free int, waiting []int64, next func(deployments []int64, chosen []turn) ([]turn, error)) (chosen []turn, more bool, err error) {
	waiting = slices.Clone(waiting)
	for free > 0 && len(waiting) > 0 {
		may := waiting[:1] // all jobs of no deployment go before others
		if waiting[0] != noDeployment {
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
