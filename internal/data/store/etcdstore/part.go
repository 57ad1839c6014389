package etcdstore

import (
	"encoding/binary"
	"errors"

	"netkeep.internal/internal/data/store"
)

// part is some ops of a staged batch, as many as one transaction can carry out.
type part struct {
	n   int // its place among them
	ops []store.Op
}

// cut makes parts of ops.
func cut(ops []store.Op, most store.Limits) (parts []part) {
	for len(ops) > 0 {
		n, bytes := 0, 0
		for n < min(len(ops), most.Ops) {
			bytes += len(ops[n].Key) + len(ops[n].Value)
			if n > 0 && bytes > most.Bytes {
				break
			}
			n++
		}
		parts = append(parts, part{len(parts), ops[:n]})
		ops = ops[n:]
	}
	return parts
}

// ballast makes a part heavier than the transaction that carries out one op of
// it: a server that has taken the part takes that too.
const ballast = 2 << 10

// encodePart makes of each op its key and its value, with their lengths before
// them. That of the value is one more than it is, and 0 says that there is none.
func encodePart(ops []store.Op) []byte {
	size := ballast
	for _, op := range ops {
		size += len(op.Key) + len(op.Value) + 2*binary.MaxVarintLen32
	}
	data := make([]byte, ballast, size)
	for _, op := range ops {
		data = append(binary.AppendUvarint(data, uint64(len(op.Key))), op.Key...)
		if op.Value == nil {
			data = append(data, 0)
			continue
		}
		data = append(binary.AppendUvarint(data, uint64(len(op.Value))+1), op.Value...)
	}
	return data
}

var errPart = errors.New("etcd: a part of a staged batch is damaged")

// decodePart returns the ops of a part. Their values share its memory.
func decodePart(data []byte) (ops []store.Op, err error) {
	if len(data) < ballast {
		return nil, errPart
	}
	for data = data[ballast:]; len(data) > 0; {
		var key, value []byte
		if key, data, err = chunk(data, 0); err != nil {
			return nil, err
		}
		if value, data, err = chunk(data, 1); err != nil {
			return nil, err
		}
		ops = append(ops, store.Op{Key: string(key), Value: value})
	}
	return ops, nil
}

// chunk takes what has its length, and so much more, before it; nil if that is
// less.
func chunk(data []byte, more uint64) (head, rest []byte, err error) {
	size, n := binary.Uvarint(data)
	switch data = data[max(n, 0):]; {
	case n <= 0:
		return nil, nil, errPart
	case size < more:
		return nil, data, nil
	case size-more > uint64(len(data)):
		return nil, nil, errPart
	}
	size -= more
	return data[:size:size], data[size:], nil
}
