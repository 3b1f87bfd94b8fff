package notifications

import (
	"errors"
	"strconv"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/sony/gobreaker/v2"
)

const (
	// failuresInARow is the number of consecutive failures that open a circuit. With fewer, a receiver that fails half of
	// the time would be blocked too often.
	failuresInARow = 15
	// circuitOpenTime is how long a circuit stays open before one message probes the receiver.
	circuitOpenTime = 20 * time.Second
	// maxCircuits limits memory. An evicted circuit starts closed.
	maxCircuits = 10_000
)

// errInterrupted is the outcome of a message that may or may not have arrived. It does not count for the circuit.
var errInterrupted = errors.New("the delivery was cut off")

// endpoint identifies one circuit: a rule with its current config. A new config gets a new circuit.
type endpoint struct {
	receiver
	updatedAt int64
}

type circuit = gobreaker.TwoStepCircuitBreaker[struct{}]

// breakers holds the circuits of this node.
type breakers struct {
	circuits *lru.Cache[endpoint, *circuit]

	mu sync.Mutex
	// open holds the circuits that are open, and the ones with an open time that ended since the last check.
	open map[endpoint]*circuit
	// opened lists the endpoints with a circuit that opened since the last call of takeOpened.
	opened []endpoint
}

func newBreakers() *breakers {
	circuits, err := lru.New[endpoint, *circuit](maxCircuits)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &breakers{circuits: circuits, open: map[endpoint]*circuit{}}
}

func (b *breakers) of(e endpoint) *circuit {
	if known, ok := b.circuits.Get(e); ok {
		return known
	}
	var made *circuit
	made = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        strconv.FormatInt(e.ruleID, 10),
		Timeout:     circuitOpenTime,
		IsExcluded:  func(err error) bool { return errors.Is(err, errInterrupted) },
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresInARow },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.open, e)
			if to == gobreaker.StateOpen {
				b.open[e] = made
			}
			if from == gobreaker.StateClosed && to == gobreaker.StateOpen {
				b.opened = append(b.opened, e)
			}
		},
	})
	b.circuits.Add(e, made)
	return made
}

// openEndpoints returns the endpoints that must not be sent to now.
func (b *breakers) openEndpoints() (open []endpoint) {
	b.mu.Lock()
	known := make(map[endpoint]*circuit, len(b.open))
	for e, c := range b.open {
		known[e] = c
	}
	b.mu.Unlock()
	for e, c := range known { // checked without the lock: a state change takes it
		if c.State() == gobreaker.StateOpen {
			open = append(open, e)
		}
	}
	return open
}

func (b *breakers) takeOpened() []endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.opened
	b.opened = nil
	return taken
}
