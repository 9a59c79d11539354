/** What clients count. Frames are those of peers, both ways. */
export interface Tallies {
  sentFrames: number;
  sentBytes: number;
  receivedFrames: number;
  receivedBytes: number;
  connections: number;
  /** Frames that went nowhere, by reason. */
  readonly dropped: {
    /** No relay is connected. */
    noRelay: number;
    /** The relay does not take what is sent: the oldest go. */
    slowRelay: number;
    /** Too long for a frame. */
    tooLong: number;
    /** From a key that is no peer here. */
    unknownPeer: number;
  };
}

export const newTallies = (): Tallies => ({
  sentFrames: 0,
  sentBytes: 0,
  receivedFrames: 0,
  receivedBytes: 0,
  connections: 0,
  dropped: { noRelay: 0, slowRelay: 0, tooLong: 0, unknownPeer: 0 },
});
