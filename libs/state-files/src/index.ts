export { holds } from './holds.ts';
export { removeFile, replaceFile, replaceFileAsync, replaceLink, type ReplaceOptions } from './replace-file.ts';
