package state

import "netkeep.internal/internal/lang/kind"

// Adopt stores a record that was kept elsewhere until now, with the id and the times that
// it has, in the place of one with its id if there is any. All rules of its kind hold, as for
// an edit that leaves the record as it was: what is refused only to who brings something new
// may stay. As with Create the record is shared from then on.
func (tx *Tx) Adopt(d *kind.Def, rec kind.Record) error {
	m := rec.Base()
	if m.ID == "" {
		m.ID = tx.idFor(d)
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = kind.MomentOf(tx.clock.stamp())
	}
	if m.UpdatedAt.Before(m.CreatedAt) {
		m.UpdatedAt = m.CreatedAt
	}
	if err := tx.set.Validate(tx, d, d.Clone(rec), rec); err != nil {
		return err
	}
	old, _ := tx.Lookup(d, m.ID)
	return tx.write(d, old, rec)
}
