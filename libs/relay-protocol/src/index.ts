export * from './extension.codec.ts';
export * from './frame.ts';
export { FrameParser } from './frame-parser.ts';
export { isLowOrderKey } from './key.ts';
export * from './link.codec.ts';
export * from './messages.codec.ts';
export { BlockPool, PartialFrame } from './partial-frame.ts';
export * from './proof.ts';
