package etcdstore

import (
	"testing"

	"netkeep/internal/data/store"
	"netkeep/internal/data/store/storetest"
)

// narrow has transactions hold so few ops that almost every batch is staged.
func narrow(fresh func(*testing.T) storetest.Opener) func(*testing.T) storetest.Opener {
	return func(t *testing.T) storetest.Opener {
		o := fresh(t)
		open := o.Open
		o.Open = func(t testing.TB) store.Store {
			s := open(t).(*Store)
			s.quick.Ops = 1
			return s
		}
		return o
	}
}

func TestContractStaged(t *testing.T) {
	storetest.Run(t, narrow(embedded(startTest(t, testLogger(t), asIs))))
}

func TestCompareStaged(t *testing.T) {
	storetest.Compare(t, narrow(embedded(startTest(t, testLogger(t), asIs))))
}
