package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
)

// beatsPerStandby is how often the writer says that it lives, in the time after which
// its silence counts as its end.
const beatsPerStandby = 5

// heart is where the writer of a chain says that it lives: the metadata of an offset
// that a consumer group without members has committed, which Kafka keeps for each group,
// and where nothing grows. It decides nothing but when a standby tries to take over:
// that there is one writer is the work of the transactional id, and a beat that comes
// late, or is lost, costs a takeover and no record.
type heart struct {
	adm   *kadm.Client
	group string
	topic string
}

func (i *Ingest) heart(client *kgo.Client) heart {
	return heart{kadm.NewClient(client), chainlog.HeartGroup(i.config.ID), chainlog.CursorTopic(i.config.ID)}
}

// say commits a beat; an empty one says that nobody writes.
func (h heart) say(ctx context.Context, beat string) error {
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: h.topic, LeaderEpoch: -1, Metadata: beat})
	answer, err := h.adm.CommitOffsets(ctx, h.group, offsets)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		return fmt.Errorf("commit to the Kafka group %s that this ingest writes: %w", h.group, chainlog.Explain(err))
	}
	return nil
}

// heard is the newest beat, empty for none.
func (h heart) heard(ctx context.Context) (string, error) {
	answer, err := h.adm.FetchOffsets(ctx, h.group)
	if err == nil {
		err = answer.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return "", nil // nobody has ever written
	}
	if err != nil {
		return "", fmt.Errorf("read from the Kafka group %s whether an ingest writes: %w", h.group, chainlog.Explain(err))
	}
	beat, _ := answer.Lookup(h.topic, 0)
	return beat.Metadata, nil
}

// standBy returns when no other ingest writes the log: none is known, the last one said
// that it ends, or it has said nothing for config.Standby, by this process's clock.
// While Kafka does not answer nobody is silent. A beat of its own says nothing else than
// that of another one: who hung and woke up says it over those of the one that took over
// meanwhile, which lives.
func (i *Ingest) standBy(ctx context.Context) error {
	if i.config.Standby == 0 {
		return nil
	}
	client, err := kgo.NewClient(i.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	examining, stop := context.WithCancel(ctx)
	var examined sync.WaitGroup
	defer func() { stop(); examined.Wait() }()
	h, last, trouble, since := i.heart(client), "", "", time.Now()
	for waiting := false; ; waiting = true {
		bounded, cancel := context.WithTimeout(ctx, i.config.Standby)
		beat, err := h.heard(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if err.Error() != trouble {
				i.log.Warn("ingest cannot tell whether another one writes, and waits", "error", err)
			}
			trouble, since = err.Error(), time.Now()
		case beat == "":
			return nil
		case beat != last:
			if (last == "" || i.own(last)) && !i.own(beat) {
				i.log.Info("another ingest writes this chain's log, this one stands by", "writer", writerOf(beat), "takesOverAfter", i.config.Standby)
			}
			last, trouble, since = beat, "", time.Now()
		case time.Since(since) >= i.config.Standby:
			i.log.Info("the ingest that wrote this chain's log last is silent, this one takes over", "writer", writerOf(beat), "after", i.config.Standby)
			return nil
		}
		reason := "another ingest writes this chain's log: " + writerOf(last)
		if i.own(last) {
			reason = "another ingest took over this chain's log, and has not said yet that it writes"
		}
		if trouble != "" {
			reason = trouble
		}
		i.note(func(s *Status) {
			s.State, s.Reason, s.standby.trouble = Standby, reason, trouble
			if err == nil {
				s.standby.heard = time.Now()
			}
		})
		if !waiting {
			examined.Go(func() { i.examine(examining) })
		}
		if err := rpc.Sleep(ctx, i.config.Standby/beatsPerStandby); err != nil {
			return err
		}
	}
}

// standing is what a standby knows of whether it could take over.
type standing struct {
	heard   time.Time // when Kafka last said who writes
	trouble string    // why Kafka does not say it; empty when it does
	unfit   string    // why the log, the chain and the configuration do not let it write; empty for nothing
	known   bool      // whether that was looked at
}

// examineEvery is the pause between two looks whether a standby could take over.
const examineEvery = 10 * time.Second

// examine looks again and again, until ctx ends, whether this ingest could write the log: a
// configuration that contradicts the log shows now, and not when the writer is gone. It
// fences nobody.
func (i *Ingest) examine(ctx context.Context) {
	i.note(func(s *Status) { s.standby.unfit, s.standby.known = "", false })
	for {
		err := i.wouldFit(ctx)
		if ctx.Err() != nil {
			return
		}
		unfit := ""
		if err != nil {
			unfit = err.Error()
		}
		i.note(func(s *Status) { s.standby.unfit, s.standby.known = unfit, true })
		if rpc.Sleep(ctx, examineEvery) != nil {
			return
		}
	}
}

// wouldFit is nil when a node answers, and log, chain and configuration belong together.
func (i *Ingest) wouldFit(ctx context.Context) error {
	if err := i.nodes.Answers(ctx); err != nil {
		return err
	}
	cursor, err := i.readCursor(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	origin, err := chainlog.ReadOrigin(bounded, i.config.ID, i.kafka.Options()...)
	if err != nil {
		return err
	}
	genesis := i.nodes.Genesis()
	if err := i.compatible(cursor, origin, genesis[:]); err != nil {
		return i.unlessMoved(ctx, cursor, err)
	}
	if cursor != nil {
		_, err = stateOf(cursor)
	}
	return err
}

// StandsBy reports whether another ingest writes the log, and this one waits for its end.
func (i *Ingest) StandsBy() bool { return i.Status().State == Standby }

// standbyReady is nil when a standby could take over: Kafka says who writes, the
// configuration fits the log, and a node of the chain answers.
func (i *Ingest) standbyReady(st *Status) error {
	switch s := st.standby; {
	case s.trouble != "":
		return fmt.Errorf("ingest stands by and could not take over: %s", s.trouble)
	case st.Time.Sub(s.heard) > 2*i.config.Standby+examineEvery:
		return fmt.Errorf("ingest stands by, and Kafka has not said who writes since %s", s.heard.UTC().Format(time.RFC3339))
	case !s.known:
		return errors.New("ingest stands by and does not know yet whether it could take over")
	case s.unfit != "":
		return fmt.Errorf("ingest stands by and could not take over: %s", s.unfit)
	}
	return nil
}

// own tells whether a beat is this process's.
func (i *Ingest) own(beat string) bool { return writerOf(beat) == fmt.Sprintf("%x", i.instance) }

func writerOf(beat string) string {
	writer, _, _ := strings.Cut(beat, " ")
	return writer
}

// live says again and again that this ingest writes, until ctx ends. What standbys do
// when they hear nothing is warned of.
func (i *Ingest) live(ctx context.Context, client *kgo.Client) {
	if i.config.Standby == 0 {
		return
	}
	h, trouble := i.heart(client), ""
	for n := 1; ; n++ {
		bounded, cancel := context.WithTimeout(ctx, i.config.Standby)
		err := h.say(bounded, fmt.Sprintf("%x %d %d", i.instance, time.Now().UnixMilli(), n))
		cancel()
		if err == nil {
			trouble = ""
		} else if ctx.Err() == nil && err.Error() != trouble {
			trouble = err.Error()
			i.log.Warn("ingest cannot say that it writes: one that stands by would take over", "error", err)
		}
		if rpc.Sleep(ctx, i.config.Standby/beatsPerStandby) != nil {
			return
		}
	}
}

// farewellTimeout bounds a farewell that Kafka does not take.
const farewellTimeout = 2 * time.Second

// farewell says that the writer ends, so that nobody waits for it in vain. Where another
// one has taken over already, that one goes on.
func (i *Ingest) farewell(ctx context.Context) {
	if i.config.Standby == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellTimeout)
	defer cancel()
	client, err := kgo.NewClient(i.kafka.Options()...)
	if err == nil {
		defer client.Close()
		h := i.heart(client)
		var beat string
		if beat, err = h.heard(ctx); err == nil && i.own(beat) {
			err = h.say(ctx, "")
		}
	}
	if err != nil {
		i.log.Debug("nobody was told that this ingest ends", "error", err)
	}
}
