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
	// failuresInARow open a circuit: with fewer, a receiver that fails half of the time would lose time to it.
	failuresInARow = 15
	// circuitRest is how long a receiver is left alone before one message probes it.
	circuitRest = 20 * time.Second
	// maxCircuits bounds the memory; a circuit that is forgotten starts closed.
	maxCircuits = 10_000
)

// errCutOff is the outcome of a message of which we do not know whether it arrived: it says nothing about the receiver.
var errCutOff = errors.New("the delivery was cut off")

// endpoint is what one circuit protects: a rule as it is configured now. A new config gets a new circuit.
type endpoint struct {
	receiver
	updatedAt int64
}

type circuit = gobreaker.TwoStepCircuitBreaker[struct{}]

// breakers are the circuits of this node.
type breakers struct {
	circuits *lru.Cache[endpoint, *circuit]

	mu sync.Mutex
	// open are the circuits that are open, and those whose rest is over since they were asked last.
	open map[endpoint]*circuit
	// opened are the endpoints whose circuit opened since the last call of takeOpened.
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
		Timeout:     circuitRest,
		IsExcluded:  func(err error) bool { return errors.Is(err, errCutOff) },
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

// openEndpoints are those to which nothing may be sent now.
func (b *breakers) openEndpoints() (open []endpoint) {
	b.mu.Lock()
	known := make(map[endpoint]*circuit, len(b.open))
	for e, c := range b.open {
		known[e] = c
	}
	b.mu.Unlock()
	for e, c := range known { // asked without the lock: a circuit that changes takes it
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
