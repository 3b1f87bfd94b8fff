package jobs

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a queue in memory: jobs by deployment and run, in River's order.
type model struct {
	turns   *turns
	places  int
	waiting map[int64]map[int64][]int64
	running map[int64]turn
	id      int64
}

func (m *model) add(deployment, run int64) {
	if m.waiting[deployment] == nil {
		m.waiting[deployment] = map[int64][]int64{}
	}
	m.id++
	m.waiting[deployment][run] = append(m.waiting[deployment][run], m.id)
}

// first returns the next job of a deployment after a run.
func (m *model) first(deployment, after int64, chosen []turn) (turn, bool) {
	runs := slices.Sorted(maps.Keys(m.waiting[deployment]))
	later := func(a, b int64) int { return cmp.Or(cmp.Compare(b2i(a <= after), b2i(b <= after)), cmp.Compare(a, b)) }
	slices.SortFunc(runs, later)
	for _, run := range runs {
		for _, id := range m.waiting[deployment][run] {
			if c := (turn{deployment, run, id}); !slices.Contains(chosen, c) {
				return c, true
			}
		}
	}
	return turn{}, false
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// list returns the same as the database: noDeployment, then the deployments after the last turn, up to the requested
// number.
func (m *model) list(last int64, most int) (list []int64) {
	for _, deployment := range slices.Sorted(maps.Keys(m.waiting)) {
		if len(m.waiting[deployment]) > 0 {
			list = append(list, deployment)
		}
	}
	slices.SortStableFunc(list, func(a, b int64) int {
		lap := func(d int64) int { return b2i(d != noDeployment) + b2i(d != noDeployment && d <= last) }
		return cmp.Compare(lap(a), lap(b))
	})
	return list[:min(len(list), most+1)]
}

func (m *model) remove(c turn) {
	left := slices.DeleteFunc(m.waiting[c.deployment][c.run], func(id int64) bool { return id == c.job })
	if m.waiting[c.deployment][c.run] = left; len(left) == 0 {
		delete(m.waiting[c.deployment], c.run)
	}
}

// counts returns the number of running jobs by deployment.
func (m *model) counts() map[int64]int {
	counts := map[int64]int{}
	for _, c := range m.running {
		counts[c.deployment]++
	}
	return counts
}

// fetch chooses jobs and checks each choice against the policy.
func (m *model) fetch(t *rapid.T, passed map[[2]int64]int) {
	free := m.places - len(m.running)
	last, most := m.turns.scanRange(free)
	chosen, more, err := m.turns.choose(free, m.list(last, most), func(deployments []int64, chosen []turn) (found []turn, _ error) {
		for _, deployment := range deployments {
			if c, ok := m.first(deployment, m.turns.lastRun(deployment), chosen); ok {
				found = append(found, c)
			}
		}
		return found, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range chosen {
		counts := m.counts()
		if c.deployment != noDeployment {
			if len(m.waiting[noDeployment]) > 0 {
				t.Fatalf("deployment %d goes before jobs of no deployment", c.deployment)
			}
			if counts[c.deployment] >= free {
				t.Fatalf("choice %d: deployment %d has %d slots and gets one of %d free ones", i, c.deployment, counts[c.deployment], free)
			}
		}
		if first := m.waiting[c.deployment][c.run][0]; first != c.job {
			t.Fatalf("job %d goes before job %d of the same run", c.job, first)
		}
		for deployment := range m.waiting { // a deployment without a slot could have had this one: it was passed over once more
			if deployment != noDeployment && c.deployment != noDeployment && len(m.waiting[deployment]) > 0 && counts[deployment] == 0 && deployment != c.deployment {
				if passed[[2]int64{deployment, c.deployment}]++; passed[[2]int64{deployment, c.deployment}] > 1 {
					t.Fatalf("deployment %d got two turns while %d had no running job", c.deployment, deployment)
				}
			}
		}
		maps.DeleteFunc(passed, func(pair [2]int64, _ int) bool { return pair[0] == c.deployment })
		m.remove(c)
		m.running[c.job] = c
		free--
	}
	if free < 0 {
		t.Fatalf("%d slots too many", -free)
	}
	counts, left := m.counts(), false
	for deployment, runs := range m.waiting {
		left = left || len(runs) > 0
		if len(runs) > 0 && free > 0 && (deployment == noDeployment || counts[deployment] < free) {
			t.Fatalf("%d slots are free, deployment %d has %d and waits", free, deployment, counts[deployment])
		}
	}
	if left && !more {
		t.Fatal("jobs are left, and no poll is due when a slot is free")
	}
}

// TestTurns: no slot stays free that a job may have. No deployment exceeds its share. A deployment without running
// jobs is passed over at most once by each other deployment. Within a run the order is kept.
func TestTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			turns: newTurns(time.Second), places: rapid.IntRange(1, 16).Draw(t, "places"), waiting: map[int64]map[int64][]int64{}, running: map[int64]turn{},
		}
		passed := map[[2]int64]int{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				deployment, run := rapid.Int64Range(0, 5).Draw(t, "deployment"), rapid.Int64Range(0, 3).Draw(t, "run")
				for range rapid.IntRange(1, 30).Draw(t, "jobs") {
					m.add(deployment, run)
				}
			case 1:
				if ids := slices.Sorted(maps.Keys(m.running)); len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "ended")
					delete(m.running, id)
					m.turns.end(id)
					m.turns.end(id)
				}
			default:
				m.fetch(t, passed)
			}
		}
		for id := range m.running {
			m.turns.end(id)
		}
		if len(m.turns.running) != 0 || len(m.turns.owners) != 0 {
			t.Fatalf("when all have ended, %v still run", m.turns.running)
		}
	})
}

// TestTurnsOfRuns: each run of a deployment gets one turn before any run gets another.
func TestTurnsOfRuns(t *testing.T) {
	t.Parallel()
	m := &model{turns: newTurns(time.Second), places: 3, waiting: map[int64]map[int64][]int64{}, running: map[int64]turn{}}
	for range 1000 {
		m.add(1, 1)
	}
	for run := int64(2); run <= 5; run++ {
		m.add(1, run)
		m.add(1, run)
	}
	var runs []int64
	for range 10 {
		chosen, _, err := m.turns.choose(1, []int64{1}, func(_ []int64, chosen []turn) ([]turn, error) {
			c, _ := m.first(1, m.turns.lastRun(1), chosen)
			return []turn{c}, nil
		})
		if err != nil || len(chosen) != 1 {
			t.Fatalf("%v, %v", chosen, err)
		}
		m.remove(chosen[0])
		m.turns.end(chosen[0].job)
		runs = append(runs, chosen[0].run)
	}
	if want := []int64{1, 2, 3, 4, 5, 1, 2, 3, 4, 5}; !slices.Equal(runs, want) {
		t.Errorf("the turns are %v, want %v", runs, want)
	}
}

// TestThreshold: a deployment alone gets half of the slots, and other deployments still find one each.
func TestThreshold(t *testing.T) {
	t.Parallel()
	q := newTurns(time.Second)
	id := int64(0)
	next := func(deployments []int64, _ []turn) (found []turn, _ error) {
		for _, deployment := range deployments {
			id++
			found = append(found, turn{deployment: deployment, job: id})
		}
		return found, nil
	}
	free := 8
	for i, want := range []int{4, 2, 1, 1, 0} {
		chosen, _, err := q.choose(free, []int64{int64(i) + 1}, next)
		if err != nil || len(chosen) != want {
			t.Errorf("deployment %d gets %d of %d free slots, want %d: %v", i+1, len(chosen), free, want, err)
		}
		free -= len(chosen)
	}
	// The first deployment has four running jobs. When one of them ends, its slot goes to a deployment without any.
	q.end(1)
	if chosen, _, _ := q.choose(1, []int64{1, 5}, next); len(chosen) != 1 || chosen[0].deployment != 5 {
		t.Errorf("the free slot goes to %v", chosen)
	}
}

// TestFreed: a job that has ended is a reason to poll only while others wait, and only once.
func TestFreed(t *testing.T) {
	t.Parallel()
	q := newTurns(time.Second)
	for i, step := range []struct{ more, ended, want bool }{
		{}, {ended: true}, {more: true}, {more: true, ended: true, want: true}, {more: true},
	} {
		q.setMore(step.more)
		if step.ended {
			q.begin(turn{job: 1})
			q.end(1)
		}
		if got := q.freed(); got != step.want {
			t.Errorf("step %d: freed is %v", i, got)
		}
	}
}
