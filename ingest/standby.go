package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
)

const (
	// heartbeatsPerStandby is the number of heartbeats that the writer sends within config.Standby,
	// after which a standby takes a silent writer for dead.
	heartbeatsPerStandby = 5
	// A standby whose nodes respond replaces a writer that has reached no node for withoutNodeStandbys times
	// config.Standby. Both judge their nodes by the same calls, so two with the same nodes do not take turns.
	withoutNodeStandbys = 10
	withoutNodeMark     = " nodeless" // ends the heartbeat of a writer without a node
)

// commitHeartbeat stores the heartbeat of the chain's writer; an empty one means that no ingest writes. It is the
// metadata of an offset that a consumer group without members has committed: Kafka keeps one, so nothing grows. It only
// decides when a standby tries to take over, so a late or lost heartbeat costs a takeover, and no record.
func (i *Ingest) commitHeartbeat(ctx context.Context, client *kgo.Client, heartbeat string) error {
	group := chainlog.HeartGroup(i.config.ID)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: chainlog.CursorTopic(i.config.ID), LeaderEpoch: -1, Metadata: heartbeat})
	if _, err := chainlog.Checked(kadm.NewClient(client).CommitOffsets(ctx, group, offsets)); err != nil {
		return fmt.Errorf("commit to the Kafka group %s that this ingest writes: %w", group, err)
	}
	return nil
}

func (i *Ingest) readHeartbeat(ctx context.Context, client *kgo.Client) (string, error) {
	group := chainlog.HeartGroup(i.config.ID)
	answer, err := chainlog.Checked(kadm.NewClient(client).FetchOffsets(ctx, group))
	if errors.Is(err, kerr.GroupIDNotFound) {
		return "", nil // no ingest has ever written
	}
	if err != nil {
		return "", fmt.Errorf("read from the Kafka group %s whether an ingest writes: %w", group, err)
	}
	heartbeat, _ := answer.Lookup(chainlog.CursorTopic(i.config.ID), 0)
	return heartbeat.Metadata, nil
}

// standBy returns when a node responds and, after that, no other ingest writes the log: none is known, the last one
// cleared its heartbeat, it has sent no heartbeat for config.Standby, by this process's clock, or it has reached no
// node for withoutNodeStandbys times as long. Time in which Kafka does not answer does not count. A heartbeat of this
// process's own counts like that of another: a process that hung may overwrite the heartbeat of its successor. If no
// ingest writes and the nodes fail, standBy returns their error. With config.Standby 0 it only calls the nodes.
func (i *Ingest) standBy(ctx context.Context) error {
	if i.config.Standby == 0 {
		return i.nodes.CheckAnswers(ctx)
	}
	client, err := kgo.NewClient(i.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer func() { client.Close() }()
	i.status.Note(func(s *status.Status) {
		s.HeartbeatError, s.CannotWrite = "", "log, chain and configuration are not compared yet"
	})
	last, trouble := "", ""
	heard := time.Now() // when the writer, or an error of Kafka, was last heard of
	able := heard       // when the writer last had a node, or this ingest could not have taken over
	for served, waiting := false, false; ; {
		// A new client also has to connect, which can take longer than a short config.Standby, again and again.
		bounded, cancel := context.WithTimeout(ctx, max(i.config.Standby, reachTimeout))
		heartbeat, err := i.readHeartbeat(bounded, client)
		cancel()
		if err == nil && heartbeat != "" && heartbeat != last {
			if (last == "" || i.isOwn(last)) && !i.isOwn(heartbeat) {
				i.log.Info("another ingest writes this chain's log, this one stands by", "writer",
					writerOf(heartbeat), "takesOverAfter", i.config.Standby)
			}
			last, trouble, heard = heartbeat, "", time.Now()
			if !strings.HasSuffix(heartbeat, withoutNodeMark) || i.status.Snapshot().CannotWrite != "" {
				able = heard
			}
		}
		silent, withoutNode := time.Since(heard), time.Since(able)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if err.Error() != trouble {
				i.log.Warn("cannot read whether another ingest writes, waiting", "error", err)
			}
			trouble, heard, able, served = err.Error(), time.Now(), time.Now(), false
			_, _, _ = i.kafka.Reach(ctx, reachTimeout) // other brokers may respond now
			if other, err := kgo.NewClient(i.kafka.Options()...); err == nil {
				client.Close()
				client = other
			}
		case heartbeat != "" && silent < i.config.Standby && withoutNode < withoutNodeStandbys*i.config.Standby:
			served = false // it may only be slow
		case served:
			if heartbeat != "" {
				i.log.Info("the ingest that wrote this chain's log last is silent or has no node, this one takes over",
					"writer", writerOf(heartbeat), "silent", silent, "withoutNode", withoutNode)
			}
			i.status.Note(func(s *status.Status) { s.State, s.Reason = status.Starting, "" })
			return nil
		default:
			if err := i.nodes.CheckAnswers(ctx); err != nil {
				return err
			}
			served = true
			continue // another ingest may have begun to write while the nodes were called
		}
		reason := "another ingest writes this chain's log: " + writerOf(last)
		if i.isOwn(last) {
			reason = "the newest heartbeat is this ingest's own: another one may have taken over"
		}
		if trouble != "" {
			reason = trouble
		}
		i.status.Note(func(s *status.Status) { s.State, s.Reason, s.HeartbeatError = status.Standby, reason, trouble })
		if !waiting {
			waiting = true
			defer inBackground(ctx, i.checkWhileWaiting)()
		}
		if err := rpc.Sleep(ctx, i.config.Standby/heartbeatsPerStandby); err != nil {
			return err
		}
	}
}

// checkEvery is the pause between two checks whether a standby could take over.
const checkEvery = 10 * time.Second

// checkWhileWaiting checks until ctx ends, every checkEvery, whether this ingest could write the log: so a
// configuration that contradicts the log is reported now, and not when the writer is gone.
func (i *Ingest) checkWhileWaiting(ctx context.Context) {
	for {
		err := i.canWrite(ctx)
		if ctx.Err() != nil {
			return
		}
		unfit := ""
		if err != nil {
			unfit = err.Error()
		}
		i.status.Note(func(s *status.Status) { s.CannotWrite = unfit })
		if rpc.Sleep(ctx, checkEvery) != nil {
			return
		}
	}
}

// canWrite returns nil if a node responds, and log, chain and configuration belong together.
func (i *Ingest) canWrite(ctx context.Context) error {
	if err := i.nodes.CheckAnswers(ctx); err != nil {
		return err
	}
	cursor, err := i.topics().Cursor(ctx)
	if err != nil {
		return err
	}
	if err := i.topics().Check(ctx, cursor, i.nodes.Genesis()); err != nil {
		return err
	}
	return i.vaults.CheckStarts(cursor)
}

// StandsBy reports whether this ingest waits for the end of another one, which writes the log.
func (i *Ingest) StandsBy() bool { return i.Status().State == status.Standby }

func (i *Ingest) isOwn(heartbeat string) bool {
	return writerOf(heartbeat) == fmt.Sprintf("%x", i.instance)
}

func writerOf(heartbeat string) string {
	writer, _, _ := strings.Cut(heartbeat, " ")
	return writer
}

// sendHeartbeats sends heartbeats until ctx ends. When one fails it logs what standbys will do.
func (i *Ingest) sendHeartbeats(ctx context.Context, client *kgo.Client) {
	if i.config.Standby == 0 {
		return
	}
	var withoutNode atomic.Bool
	defer inBackground(ctx, func(ctx context.Context) {
		for rpc.Sleep(ctx, i.config.Standby) == nil {
			// An endpoint is only called if none is known to be up.
			withoutNode.Store(i.nodes.Down() && errors.Is(i.nodes.CheckAnswers(ctx), contracts.ErrNoneAnswers))
		}
	})()
	trouble := ""
	for n := 1; ; n++ {
		heartbeat := fmt.Sprintf("%x %d %d", i.instance, time.Now().UnixMilli(), n)
		if withoutNode.Load() && i.nodes.Down() {
			heartbeat += withoutNodeMark
		}
		bounded, cancel := context.WithTimeout(ctx, i.config.Standby)
		err := i.commitHeartbeat(bounded, client, heartbeat)
		cancel()
		switch {
		case err == nil && trouble != "":
			trouble = ""
			i.log.Info("heartbeat sent again")
		case err != nil && ctx.Err() == nil && err.Error() != trouble:
			trouble = err.Error()
			i.log.Warn("heartbeat failed, retrying: a standby may take over", "error", err)
		}
		if rpc.Sleep(ctx, i.config.Standby/heartbeatsPerStandby) != nil {
			return
		}
	}
}

// clearHeartbeatTimeout bounds how long clearHeartbeat waits for Kafka.
const clearHeartbeatTimeout = 2 * time.Second

// clearHeartbeat commits an empty heartbeat when the writer ends, so that a standby takes over at once. If another
// ingest has taken over already, its next heartbeat replaces this one.
func (i *Ingest) clearHeartbeat(ctx context.Context) {
	if i.config.Standby == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearHeartbeatTimeout)
	defer cancel()
	client, err := kgo.NewClient(i.kafka.Options()...)
	if err == nil {
		defer client.Close()
		var heartbeat string
		if heartbeat, err = i.readHeartbeat(ctx, client); err == nil && i.isOwn(heartbeat) {
			err = i.commitHeartbeat(ctx, client, "")
		}
	}
	if err != nil {
		i.log.Debug("last heartbeat failed: standbys wait for chain.standby", "error", err)
	}
}
