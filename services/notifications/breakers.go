package notifications

import (
	"errors"
	"strconv"
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
type endpoint struct{ ruleID, updatedAt int64 }

type circuit = gobreaker.TwoStepCircuitBreaker[struct{}]

// breakers are the circuits of this node. Only the goroutine of the delivery run uses them.
type breakers struct {
	circuits *lru.Cache[endpoint, *circuit]
	// opened are the endpoints whose circuit opened since the last call of takeOpened.
	opened []endpoint
}

func newBreakers() *breakers {
	circuits, err := lru.New[endpoint, *circuit](maxCircuits)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &breakers{circuits: circuits}
}

func (b *breakers) of(e endpoint) *circuit {
	if known, ok := b.circuits.Get(e); ok {
		return known
	}
	made := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        strconv.FormatInt(e.ruleID, 10),
		Timeout:     circuitRest,
		IsExcluded:  func(err error) bool { return errors.Is(err, errCutOff) },
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresInARow },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			if from == gobreaker.StateClosed && to == gobreaker.StateOpen {
				b.opened = append(b.opened, e)
			}
		},
	})
	b.circuits.Add(e, made)
	return made
}

// openRules are the rules of which nothing may be sent now.
func (b *breakers) openRules() (ids []int64) {
	for _, e := range b.circuits.Keys() {
		if c, ok := b.circuits.Peek(e); ok && c.State() == gobreaker.StateOpen {
			ids = append(ids, e.ruleID)
		}
	}
	return ids
}

func (b *breakers) takeOpened() []endpoint {
	taken := b.opened
	b.opened = nil
	return taken
}
