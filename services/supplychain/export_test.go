package supplychain

import "github.com/palisade/palisade/services/internal/store"

// NewSupplyChainOfWindows is NewSupplyChain with limits so low that a few thousand dependencies exercise all plans.
func NewSupplyChainOfWindows(st *store.Store) *SupplyChain {
	return &SupplyChain{store: st, limits: limits{maxNames: 20, maxLookups: 40, maxIntersect: 120, assumedPerRepository: 30, maxSortable: 300}, selectivity: newSelectivity()}
}
