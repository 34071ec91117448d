//! What the operator does to a market: tick, mode, resolution. One frame each, then published.

use super::{Refusal, Shard};
use crate::domain::{MarketNo, Mode, Payout, Reject, Tick, TimeMs};
use crate::journal::layout::{MarketMode, RemovalReason, Resolved, TickChanged};

impl Shard {
    /// Changes a market's tick. Orders off the new grid leave in the same frame; returns how many.
    pub fn set_tick(&mut self, now: TimeMs, market: MarketNo, tick: Tick) -> Result<usize, Refusal> {
        self.judge_market(now, market)?;
        if self.registry.market(market).tick() == tick {
            return Ok(0);
        }
        if !self.books.room_to_retick(market, tick) {
            return Err(Reject::NoRoomForBook.into());
        }
        self.slots.clear();
        let orders = self.books.orders();
        let off_grid = self.books.walk(market).filter(|slot| !tick.holds(orders[*slot].price));
        self.slots.extend(off_grid);
        if !self.room_for_chosen() {
            return Err(Reject::Busy.into());
        }
        self.sort_chosen();
        let removed = self.slots.len();
        self.leave_room_in_frame(RemovalReason::TickChanged)?;
        let orders = self.books.orders();
        let positions = self.slots.iter().map(|slot| orders[*slot].position).collect();
        let record = TickChanged { time: self.time, market, tick, removed: positions };
        let payload = record.encode_in(self.payload.as_flattened_mut());
        self.last = self.log.append(TickChanged::KIND, payload).end;
        self.unrest_chosen();
        self.books.retick(market, tick);
        self.registry.market(market).set_tick(tick);
        Ok(removed)
    }

    /// Changes a market's mode; a paused market's is [`Mode::CancelOnly`]. Its orders stay.
    pub fn set_mode(&mut self, now: TimeMs, market: MarketNo, mode: Mode) -> Result<(), Refusal> {
        assert!(mode != Mode::Resolved, "resolving goes with a payout");
        self.judge_market(now, market)?;
        if self.registry.market(market).mode() == mode {
            return Ok(());
        }
        let record = MarketMode { time: self.time, market, mode };
        let payload = record.encode_in(self.payload.as_flattened_mut());
        self.last = self.log.append(MarketMode::KIND, payload).end;
        self.registry.market(market).set_mode(mode);
        Ok(())
    }

    /// Sets a market's payout, for good. Its orders leave, nobody is paid yet; returns how many left.
    pub fn resolve(&mut self, now: TimeMs, market: MarketNo, payout: Payout) -> Result<usize, Refusal> {
        self.judge_market(now, market)?;
        self.slots.clear();
        self.slots.extend(self.books.walk(market));
        self.sort_chosen();
        let removed = self.slots.len();
        let record = Resolved { time: self.time, market, payout };
        let payload = record.encode_in(self.payload.as_flattened_mut());
        self.last = self.log.append(Resolved::KIND, payload).end;
        self.unrest_chosen();
        self.registry.market(market).resolve(payout);
        Ok(removed)
    }

    /// What every act here needs: a market of this shard that is not resolved, and room in the log.
    fn judge_market(&mut self, now: TimeMs, market: MarketNo) -> Result<(), Refusal> {
        if self.registry.market_count() <= market.0 {
            // Its frame is in the log, and its row follows.
            return Err(Reject::Busy.into());
        }
        assert!(self.owns(market), "a market has one shard");
        self.clock(now);
        if !self.log.room_for_cancel(self.settings.shards) {
            return Err(Reject::Busy.into());
        }
        if self.registry.market(market).mode() == Mode::Resolved {
            return Err(Reject::MarketResolved.into());
        }
        Ok(())
    }
}
