export { removeFile, replaceFile, replaceFileAsync, type ReplaceOptions } from './replace-file.ts';
