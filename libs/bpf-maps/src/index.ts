export { type Codec, decode, encode } from './codec.ts';
export * from './endpoints.ts';
